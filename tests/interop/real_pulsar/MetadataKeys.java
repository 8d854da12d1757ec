import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.metadata.api.GetResult;
import org.apache.pulsar.metadata.api.MetadataStore;
import org.apache.pulsar.metadata.api.MetadataStoreConfig;
import org.apache.pulsar.metadata.api.MetadataStoreFactory;

/**
 * Reads and alters the metadata of a stopped standalone Pulsar: METADATA_DIR get|put|delete|children|put-all|below KEY.
 * The value of a put is read from standard input. A get writes "+" and the value to standard output, or "-" when the key
 * is absent; children writes one name per line. put-all reads, and below writes for every key below the given one, lines
 * of a key and its value in base64, separated by a tab.
 */
public class MetadataKeys {
    public static void main(String[] args) throws Exception {
        MetadataStoreConfig config = MetadataStoreConfig.builder().fsyncEnable(true).build();
        try (MetadataStore store = MetadataStoreFactory.create("rocksdb://" + args[0], config)) {
            run(store, args[1], args[2]);
        }
        System.exit(0);
    }

    private static void run(MetadataStore store, String verb, String key) throws Exception {
        switch (verb) {
            case "get" -> {
                Optional<GetResult> found = store.get(key).get(30, TimeUnit.SECONDS);
                System.out.write(found.isPresent() ? '+' : '-');
                System.out.write(found.map(GetResult::getValue).orElse(new byte[0]));
                System.out.flush();
            }
            case "put" -> store.put(key, System.in.readAllBytes(), Optional.empty()).get(30, TimeUnit.SECONDS);
            case "delete" -> store.delete(key, Optional.empty()).get(30, TimeUnit.SECONDS);
            case "put-all" -> putAll(store);
            case "below" -> printBelow(store, key);
            case "children" -> store.getChildren(key).get(30, TimeUnit.SECONDS).forEach(System.out::println);
            default -> throw new IllegalArgumentException("unknown verb " + verb);
        }
    }

    private static void putAll(MetadataStore store) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] parts = line.split("\t", -1);
            byte[] value = Base64.getDecoder().decode(parts[1]);
            store.put(parts[0], value, Optional.empty()).get(30, TimeUnit.SECONDS);
        }
    }

    private static void printBelow(MetadataStore store, String key) throws Exception {
        for (String child : store.getChildren(key).get(30, TimeUnit.SECONDS)) {
            String path = key + "/" + child;
            Optional<GetResult> found = store.get(path).get(30, TimeUnit.SECONDS);
            if (found.isPresent()) {
                System.out.println(path + "\t" + Base64.getEncoder().encodeToString(found.get().getValue()));
            }
            printBelow(store, path);
        }
    }
}
