import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.Enumeration;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.apache.bookkeeper.client.BKException;
import org.apache.bookkeeper.client.BookKeeper;
import org.apache.bookkeeper.client.BookKeeper.DigestType;
import org.apache.bookkeeper.client.LedgerEntry;
import org.apache.bookkeeper.client.LedgerHandle;
import org.apache.bookkeeper.conf.ClientConfiguration;

/** Does to ledgers what the lines of its input say, one answer each, with BookKeeper's own client as Pulsar sets it up. */
public class Ledgers {
    private static final Map<Long, LedgerHandle> HANDLES = new HashMap<>();
    private static BookKeeper client;
    private static byte[] password;

    public static void main(String[] arguments) throws Exception {
        System.setProperty(
            "bookkeeper.metadata.client.drivers", "org.apache.pulsar.metadata.bookkeeper.PulsarMetadataClientDriver");
        ClientConfiguration configuration = new ClientConfiguration();
        configuration.setMetadataServiceUri("metadata-store:zk:" + arguments[0]);
        configuration.setUseV2WireProtocol(true);
        configuration.setZkTimeout(10_000);
        client = BookKeeper.forConfig(configuration).build();
        password = arguments.length > 1 ? arguments[1].getBytes() : new byte[0];
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String answer;
            try {
                answer = answer(line.split(" "));
            } catch (BKException e) {
                answer = "error " + e.getClass().getSimpleName();
            }
            System.out.println(answer);
            System.out.flush();
        }
        Runtime.getRuntime().halt(0);
    }

    private static String answer(String[] words) throws Exception {
        switch (words[0]) {
            case "create": {
                LedgerHandle made = client.createLedger(number(words[1]), number(words[2]), number(words[3]),
                    DigestType.valueOf(words[4]), password, Map.of("application", "java".getBytes()));
                HANDLES.put(made.getId(), made);
                return "" + made.getId();
            }
            case "recover":
            case "open": {
                long id = Long.parseLong(words[1]);
                DigestType digest = DigestType.valueOf(words[2]);
                LedgerHandle opened = words[0].equals("open")
                    ? client.openLedgerNoRecovery(id, digest, password) : client.openLedger(id, digest, password);
                HANDLES.put(id, opened);
                return opened.getLastAddConfirmed() + " " + opened.getLength() + " " + opened.isClosed();
            }
            case "delete":
                client.deleteLedger(Long.parseLong(words[1]));
                return "deleted";
            default:
                return withHandle(words, HANDLES.get(Long.parseLong(words[1])));
        }
    }

    private static String withHandle(String[] words, LedgerHandle handle) throws Exception {
        switch (words[0]) {
            case "add":
            case "fling": {
                List<CompletableFuture<Long>> added = new ArrayList<>();
                for (int i = 0; i < number(words[2]); i++) {
                    added.add(handle.appendAsync(("java " + (handle.getLastAddPushed() + 1)).getBytes()));
                }
                if (words[0].equals("add")) {
                    for (CompletableFuture<Long> each : added) {
                        try {
                            each.get();
                        } catch (java.util.concurrent.ExecutionException e) {
                            return "error " + e.getCause().getClass().getSimpleName();
                        }
                    }
                }
                return handle.getLastAddConfirmed() + " " + handle.getLastAddPushed();
            }
            case "read": {
                MessageDigest sum = MessageDigest.getInstance("SHA-1");
                long count = 0;
                long last = handle.getLastAddConfirmed();
                for (long first = 0; first <= last; first += 500) {
                    Enumeration<LedgerEntry> entries = handle.readEntries(first, Math.min(first + 499, last));
                    while (entries.hasMoreElements()) {
                        sum.update(entries.nextElement().getEntry());
                        count++;
                    }
                }
                return count + " " + HexFormat.of().formatHex(sum.digest());
            }
            case "metadata": {
                String component = new String(handle.getCustomMetadata().getOrDefault("component", new byte[0]));
                return handle.getLedgerMetadata().getAllEnsembles() + " " + component;
            }
            case "close":
                handle.close();
                return handle.getLastAddConfirmed() + " " + handle.getLength();
            default:
                throw new IllegalArgumentException(words[0]);
        }
    }

    private static int number(String word) {
        return Integer.parseInt(word);
    }
}
