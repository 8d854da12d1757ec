import java.util.Map;
import java.util.stream.Collectors;
import org.apache.pulsar.client.admin.PulsarAdmin;
import org.apache.pulsar.client.admin.PulsarAdminException;

/**
 * Looks topics up with Pulsar's own admin client. Arguments: web service URL, a partitioned topic, a plain one. A line
 * "# command" stands before each form.
 */
public class Lookup {
    public static void main(String[] arguments) throws Exception {
        String partitioned = arguments[1];
        String plain = arguments[2];
        try (PulsarAdmin admin = PulsarAdmin.builder().serviceHttpUrl(arguments[0]).build()) {
            print("topics lookup " + plain, admin.lookups().lookupTopic(plain));
            print("topics bundle-range " + plain, admin.lookups().getBundleRange(plain));
            print("topics partitioned-lookup " + partitioned, pairs(admin.lookups().lookupPartitionedTopic(partitioned)));
            try {
                print("topics partitioned-lookup " + plain, pairs(admin.lookups().lookupPartitionedTopic(plain)));
            } catch (PulsarAdminException refused) {
                print("refused", refused.getMessage());
            }
        }
    }

    private static String pairs(Map<String, String> pairs) {
        return pairs.entrySet().stream().map(each -> each.getKey() + "    " + each.getValue())
                .collect(Collectors.joining("\n"));
    }

    private static void print(String command, String form) {
        System.out.println("# " + command);
        System.out.println(form);
    }
}
