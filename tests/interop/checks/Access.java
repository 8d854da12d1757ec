import java.util.Base64;
import java.util.Date;
import java.util.EnumSet;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Supplier;
import javax.crypto.SecretKey;
import org.apache.pulsar.broker.authentication.utils.AuthTokenUtils;
import org.apache.pulsar.client.admin.PulsarAdmin;
import org.apache.pulsar.client.admin.PulsarAdminException;
import org.apache.pulsar.client.api.AuthenticationFactory;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.PulsarClientException;
import org.apache.pulsar.common.policies.data.AuthAction;
import org.apache.pulsar.common.policies.data.SubscriptionAuthMode;

/**
 * Java clients with tokens, which they make themselves: {@code Access SERVICE_URL WEB_URL SECRET_KEY_IN_BASE64}.
 *
 * {@code admin} is a super user, {@code nprod} may produce to {@code acme/app}, {@code nobody} may do nothing.
 */
public class Access {
    private static final String NAMESPACE = "acme/app";
    private static final String TOPIC = "persistent://acme/app/t";
    private static SecretKey key;

    public static void main(String[] args) throws Exception {
        String service = args[0];
        key = AuthTokenUtils.decodeSecretKey(Base64.getDecoder().decode(args[2]));
        administer(args[1], token("admin", Optional.empty()), token("nobody", Optional.empty()));
        roundTrip(service, token("admin", Optional.empty()));
        refused(service, token("nobody", Optional.empty()));
        wrongToken(service);
        renewal(service);
        System.out.println("ok");
    }

    private static void administer(String web, String token, String nobody) throws Exception {
        try (PulsarAdmin admin = admin(web, token)) {
            admin.namespaces().grantPermissionOnNamespace(
                    NAMESPACE, "java", EnumSet.of(AuthAction.produce, AuthAction.consume));
            Map<String, Set<AuthAction>> granted = admin.namespaces().getPermissions(NAMESPACE);
            check(granted.get("java").equals(EnumSet.of(AuthAction.produce, AuthAction.consume)), granted);
            admin.topics().grantPermission(TOPIC, "java-topic", EnumSet.of(AuthAction.consume));
            granted = admin.topics().getPermissions(TOPIC);
            check(granted.get("java-topic").equals(EnumSet.of(AuthAction.consume)), granted);
            check(granted.containsKey("java"), granted);
            admin.topics().revokePermissions(TOPIC, "java-topic");
            admin.namespaces().revokePermissionsOnNamespace(NAMESPACE, "java");
            check(!admin.topics().getPermissions(TOPIC).containsKey("java"), "still granted");
            admin.namespaces().grantPermissionOnSubscription(NAMESPACE, "java", Set.of("one", "two"));
            check(admin.namespaces().getPermissionOnSubscription(NAMESPACE).get("java").equals(Set.of("one", "two")),
                    admin.namespaces().getPermissionOnSubscription(NAMESPACE));
            admin.namespaces().revokePermissionOnSubscription(NAMESPACE, "java", "one");
            admin.namespaces().setSubscriptionAuthMode(NAMESPACE, SubscriptionAuthMode.Prefix);
            check(admin.namespaces().getSubscriptionAuthMode(NAMESPACE) == SubscriptionAuthMode.Prefix, "mode");
            admin.namespaces().setSubscriptionAuthMode(NAMESPACE, SubscriptionAuthMode.None);
            check(!admin.namespaces().getPolicies(NAMESPACE).auth_policies.getNamespaceAuthentication().isEmpty(),
                    "policies without permissions");
        }
        try (PulsarAdmin admin = admin(web, nobody)) {
            admin.namespaces().getTopics(NAMESPACE);
            throw new AssertionError("nobody saw the topics");
        } catch (PulsarAdminException.NotAuthorizedException expected) {
            check(expected.getStatusCode() == 403, expected);
        }
        try (PulsarAdmin admin = admin(web, nobody)) {
            admin.topics().getStats(TOPIC);
            throw new AssertionError("nobody saw the stats");
        } catch (PulsarAdminException.NotAuthorizedException expected) {
            check(expected.getStatusCode() == 401, expected);
        }
    }

    private static void roundTrip(String service, String token) throws Exception {
        try (PulsarClient client = client(service, token);
                Consumer<byte[]> consumer = client.newConsumer().topic(TOPIC).subscriptionName("java-reads").subscribe();
                Producer<byte[]> producer = client.newProducer().topic(TOPIC).create()) {
            producer.send("hello".getBytes());
            Message<byte[]> message = consumer.receive(60, TimeUnit.SECONDS);
            check(message != null && new String(message.getData()).equals("hello"), message);
        }
    }

    private static void refused(String service, String nobody) throws Exception {
        try (PulsarClient client = client(service, nobody)) {
            client.newProducer().topic(TOPIC).create();
            throw new AssertionError("nobody produces");
        } catch (PulsarClientException.AuthorizationException expected) {
            check(expected.getMessage().contains("not authorized"), expected);
        }
    }

    private static void wrongToken(String service) throws Exception {
        try (PulsarClient client = client(service, "abc")) {
            client.newProducer().topic(TOPIC).create();
            throw new AssertionError("let in with a wrong token");
        } catch (PulsarClientException.AuthenticationException expected) {
            check(expected.getMessage().contains("Failed to authenticate"), expected);
        }
    }

    /** Tokens are good for some seconds until the producer is open, then for ever. */
    private static void renewal(String service) throws Exception {
        AtomicBoolean open = new AtomicBoolean();
        AtomicBoolean renewed = new AtomicBoolean();
        Supplier<String> newest = () -> {
            renewed.set(open.get());
            return token("nprod", open.get() ? Optional.empty()
                    : Optional.of(new Date(System.currentTimeMillis() + 4000)));
        };
        try (PulsarClient client = PulsarClient.builder().serviceUrl(service)
                        .authentication(AuthenticationFactory.token(newest)).build();
                Producer<byte[]> producer = client.newProducer().topic(TOPIC).create()) {
            open.set(true);
            long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(120);
            while (!renewed.get()) {
                check(System.nanoTime() < deadline, "the broker asked for no new token");
                Thread.sleep(50);
            }
            producer.send("still here".getBytes());
            check(producer.getLastDisconnectedTimestamp() == 0, "was disconnected");
        }
    }

    private static String token(String role, Optional<Date> end) {
        return AuthTokenUtils.createToken(key, role, end);
    }

    private static PulsarAdmin admin(String web, String token) throws Exception {
        return PulsarAdmin.builder().serviceHttpUrl(web).authentication(AuthenticationFactory.token(token)).build();
    }

    private static PulsarClient client(String service, String token) throws Exception {
        return PulsarClient.builder().serviceUrl(service).operationTimeout(60, TimeUnit.SECONDS)
                .authentication(AuthenticationFactory.token(token)).build();
    }

    private static void check(boolean holds, Object shown) {
        if (!holds) {
            throw new AssertionError(String.valueOf(shown));
        }
    }
}
