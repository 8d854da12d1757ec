import jakarta.ws.rs.DELETE;
import jakarta.ws.rs.GET;
import jakarta.ws.rs.POST;
import jakarta.ws.rs.PUT;
import jakarta.ws.rs.Path;
import java.lang.annotation.Annotation;
import java.lang.reflect.Method;
import java.util.List;
import java.util.TreeSet;
import org.apache.pulsar.broker.admin.v2.Bookies;
import org.apache.pulsar.broker.admin.v2.BrokerStats;
import org.apache.pulsar.broker.admin.v2.Brokers;
import org.apache.pulsar.broker.admin.v2.Clusters;
import org.apache.pulsar.broker.admin.v2.MetadataMigration;
import org.apache.pulsar.broker.admin.v2.Namespaces;
import org.apache.pulsar.broker.admin.v2.NonPersistentTopics;
import org.apache.pulsar.broker.admin.v2.PersistentTopics;
import org.apache.pulsar.broker.admin.v2.ResourceGroups;
import org.apache.pulsar.broker.admin.v2.ResourceQuotas;
import org.apache.pulsar.broker.admin.v2.ScalableTopics;
import org.apache.pulsar.broker.admin.v2.SchemasResource;
import org.apache.pulsar.broker.admin.v2.Tenants;
import org.apache.pulsar.broker.lookup.v2.TopicLookup;
import org.apache.pulsar.broker.rest.Topics;

/** Every administrative call a real broker serves, one per line, without those of functions and of brokers among themselves. */
public class AdminPaths {
    static final List<Class<?>> RESOURCES = List.of(Bookies.class, BrokerStats.class, Brokers.class, Clusters.class,
            MetadataMigration.class, Namespaces.class, NonPersistentTopics.class, PersistentTopics.class,
            ResourceGroups.class, ResourceQuotas.class, ScalableTopics.class, SchemasResource.class, Tenants.class,
            TopicLookup.class, Topics.class);
    static final List<Class<? extends Annotation>> METHODS = List.of(GET.class, PUT.class, POST.class, DELETE.class);

    public static void main(String[] arguments) {
        TreeSet<String> calls = new TreeSet<>();
        for (Class<?> resource : RESOURCES) {
            String root = resource == TopicLookup.class ? "/lookup/" : "/admin/v2/";
            for (Method method : resource.getMethods()) {
                for (Class<? extends Annotation> each : METHODS) {
                    if (method.isAnnotationPresent(each)) {
                        Path path = method.getAnnotation(Path.class);
                        String place = resource.getAnnotation(Path.class).value() + "/" + (path == null ? "" : path.value());
                        calls.add(each.getSimpleName() + " " + (root + place).replaceAll("/+", "/").replaceAll("/$", "")
                                .replaceAll("\\{[^}]*\\}", "{}"));
                    }
                }
            }
        }
        calls.forEach(System.out::println);
    }
}
