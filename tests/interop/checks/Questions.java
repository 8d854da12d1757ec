import org.apache.pulsar.client.admin.PulsarAdminException;

/** Questions to an admin client, and how their answers and refusals are printed: one line each. */
class Questions {
    interface Question {
        Object ask() throws Exception;
    }

    interface Action {
        void run() throws Exception;
    }

    static void show(String name, Question question) {
        Object answer;
        try {
            answer = question.ask();
        } catch (PulsarAdminException refusal) {
            answer = refusal.getClass().getSimpleName() + " " + refusal.getStatusCode();
        } catch (Exception error) {
            answer = error.toString();
        }
        System.out.println(name + ": " + answer);
    }

    static void act(String name, Action action) {
        show(name, () -> {
            action.run();
            return "done";
        });
    }
}
