package main

import (
	"errors"
	"fmt"
)

// The model of one node of ZooKeeper, as `MetadataStore` and the locks of bundles use it.

// seen is a node as a client knew it: absent, or a version of it.
type seen struct {
	Version int64  `json:"version,omitempty"`
	Value   string `json:"value,omitempty"`  // empty: known by its version alone
	Writes  *int   `json:"writes,omitempty"` // since the node was created
	Absent  bool   `json:"absent,omitempty"`
}

// operation is one line of a history. An ephemeral node has a session.
type operation struct {
	Key     string `json:"key"`
	Client  string `json:"client"`
	Kind    string `json:"kind"`
	Call    int64  `json:"call"`
	Return  *int64 `json:"return"` // null: the answer was lost, it may be applied at any later time
	Outcome string `json:"outcome,omitempty"`
	Value   string `json:"value,omitempty"` // written
	Session int64  `json:"session,omitempty"`
	Expect  *seen  `json:"expect,omitempty"` // null: the write is unconditional
	Found   *seen  `json:"found,omitempty"`  // by a read
}

func (op *operation) check() error {
	switch {
	case op.Key == "":
		return errors.New("no key")
	case op.Return != nil && *op.Return < op.Call:
		return errors.New("answered before it was called")
	case op.Kind == "read" && op.Found == nil:
		return errors.New("a read without what it found")
	case op.Kind == "read" || op.Kind == "claim" || op.Kind == "expire":
		return nil
	case op.Kind != "write" && op.Kind != "delete" && op.Kind != "check":
		return fmt.Errorf("kind %q", op.Kind)
	case op.Outcome != "ok" && op.Outcome != "conflict" && op.Outcome != "unknown":
		return fmt.Errorf("outcome %q", op.Outcome)
	case op.Outcome == "conflict" && op.Expect == nil:
		return errors.New("a conflict without an expectation")
	}
	return nil
}

// node is a state. Versions of the store come from one counter: each write has a higher one.
type node struct {
	exists  bool
	value   string
	version int64 // 0: not read yet
	floor   int64 // the version is above
	writes  int   // since the creation: the version that the servers compare
	session int64
}

// step applies an operation to a state. It returns false if the outcome is impossible there.
func (s node) step(op *operation) (bool, node) {
	switch op.Kind {
	case "read":
		found, learned := s.is(op.Found)
		return found && s.session == op.Session, learned
	case "claim": // to hold the lock
		return s.exists && s.session == op.Session, s
	case "expire": // of the session
		if s.session == op.Session {
			return true, s.removed()
		}
		return true, s
	}
	met, learned := s.meets(op.Expect)
	switch {
	case op.Outcome == "conflict":
		met, _ = s.is(op.Expect)
		return !met || s.version == 0 && op.Expect.Value == "", s
	case met:
		return true, learned.changed(op)
	default: // an unknown outcome is an effect or none
		return op.Outcome == "unknown", s
	}
}

// meets tells whether a write with this condition is applied, and what its version is then.
//
// A client compares the version with the last one that it was notified of, and the servers compare the number of
// writes since the creation. So a node that was deleted, created again and written as often is taken for the old one;
// the docstring of the store says so. Only nodes that report their writes are allowed that here.
func (s node) meets(expect *seen) (bool, node) {
	if expect == nil {
		return true, s
	}
	if s.exists && expect.Writes != nil && *expect.Writes == s.writes && expect.Value != s.value {
		return true, s
	}
	return s.is(expect)
}

func (s node) is(expect *seen) (bool, node) {
	if expect.Absent || !s.exists {
		return expect.Absent && !s.exists, s
	}
	if expect.Value != "" && expect.Value != s.value {
		return false, s
	}
	if s.version == 0 && expect.Version > s.floor {
		s.version = expect.Version
	}
	return s.version == expect.Version, s
}

func (s node) changed(op *operation) node {
	switch {
	case op.Kind == "delete":
		return s.removed()
	case op.Kind == "check":
		return s
	case s.exists: // it stays ephemeral or not
		return node{true, op.Value, 0, max(s.floor, s.version), s.writes + 1, s.session}
	default:
		return node{true, op.Value, 0, s.floor, 0, op.Session}
	}
}

func (s node) removed() node {
	return node{floor: max(s.floor, s.version)}
}
