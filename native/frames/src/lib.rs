//! Frames of Pulsar's binary protocol: what travels by the thousand, read and written in runs.
//!
//! Reading is fussy on purpose. A run ends before the first frame that is not exactly of the plain form below, be it cut
//! off, too large, damaged or merely unusual: the caller reads that one with protobuf, which knows every form and has
//! the errors. So no rule about wrong input is here, and no byte of a peer can make this fail.

mod reading;
mod writing;

pub use reading::{Acks, Questions, Sends, sticky_key, take_acks, take_questions, take_sends};
pub use writing::{Answer, Delivery, Messages, Receipt, write_receipts};

const CHECKSUM_MARK: [u8; 2] = [0x0e, 0x01];
