// Command interop does what applications do with the Go client and the Go admin client, against any cluster.
//
//	interop SERVICE_URL WEB_URL [SETTINGS]
//
// Each scenario has topics of its own, all run at once, and each prints one line of JSON: its name, and why it failed.
// SETTINGS names those that need a cluster with certain settings; they run instead of those for any cluster.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/apache/pulsar-client-go/pulsar/log"
	"github.com/apache/pulsar-client-go/pulsaradmin"
	"github.com/apache/pulsar-client-go/pulsaradmin/pkg/utils"
)

// patience is an upper bound for everything that is expected to happen.
const patience = 60 * time.Second

// quiet is how long nothing must come where nothing is expected.
const quiet = time.Second

var silent = log.NewLoggerWithSlog(slog.New(slog.NewTextHandler(io.Discard, nil)))

type scenario struct {
	settings string
	name     string
	run      func(*bench)
}

var scenarios []scenario

func register(name string, run func(*bench)) {
	registerFor("", name, run)
}

func registerFor(settings, name string, run func(*bench)) {
	scenarios = append(scenarios, scenario{settings, name, run})
}

// bench is what a scenario works with.
type bench struct {
	name       string
	serviceURL string
	client     pulsar.Client
	admin      pulsaradmin.Client
}

type failure string

func main() {
	serviceURL, webURL, settings := os.Args[1], os.Args[2], ""
	if len(os.Args) > 3 {
		settings = os.Args[3]
	}
	admin, err := pulsaradmin.NewClient(&pulsaradmin.Config{WebServiceURL: webURL})
	check(err)
	var printing sync.Mutex
	var running sync.WaitGroup
	for _, each := range scenarios {
		if each.settings != settings {
			continue
		}
		running.Add(1)
		go func() {
			defer running.Done()
			outcome := map[string]string{"name": each.name, "failure": outcomeOf(each, serviceURL, admin)}
			line, err := json.Marshal(outcome)
			check(err)
			printing.Lock()
			defer printing.Unlock()
			fmt.Println(string(line))
		}()
	}
	running.Wait()
}

// newClient gives each scenario connections of its own: this client closes one on which a single request failed.
func newClient(serviceURL string) pulsar.Client {
	client, err := pulsar.NewClient(pulsar.ClientOptions{
		URL:              serviceURL,
		OperationTimeout: patience,
		Logger:           silent,
	})
	check(err)
	return client
}

func outcomeOf(each scenario, serviceURL string, admin pulsaradmin.Client) (reason string) {
	defer func() {
		if problem := recover(); problem != nil {
			reason = fmt.Sprint(problem)
			if _, expected := problem.(failure); !expected {
				reason += "\n" + string(debug.Stack())
			}
		}
	}()
	client := newClient(serviceURL)
	defer client.Close()
	each.run(&bench{each.name, serviceURL, client, admin})
	return ""
}

func check(err error) {
	if err != nil {
		panic(failure(err.Error()))
	}
}

func require(holds bool, format string, arguments ...any) {
	if !holds {
		panic(failure(fmt.Sprintf(format, arguments...)))
	}
}

func equal[T comparable](what string, is, want T) {
	require(is == want, "%s is %v, not %v", what, is, want)
}

// result is the code of an error of the client, which callers decide by.
func result(err error) pulsar.Result {
	if coded, ok := err.(*pulsar.Error); ok {
		return coded.Result()
	}
	return pulsar.Ok
}

func eventually(what string, holds func() bool) {
	for end := time.Now().Add(patience); !holds(); time.Sleep(50 * time.Millisecond) {
		require(time.Now().Before(end), "%s did not happen in %s", what, patience)
	}
}

// topic is a name that no other scenario uses.
func (r *bench) topic(name string) string {
	return "persistent://public/default/go-" + r.name + "-" + name
}

func (r *bench) topicName(topic string) utils.TopicName {
	name, err := utils.GetTopicName(topic)
	check(err)
	return *name
}

func (r *bench) producer(options pulsar.ProducerOptions) pulsar.Producer {
	producer, err := r.client.CreateProducer(options)
	check(err)
	return producer
}

func (r *bench) consumer(options pulsar.ConsumerOptions) pulsar.Consumer {
	if options.SubscriptionName == "" {
		options.SubscriptionName = "s"
	}
	consumer, err := r.client.Subscribe(options)
	check(err)
	return consumer
}

func (r *bench) reader(options pulsar.ReaderOptions) pulsar.Reader {
	reader, err := r.client.CreateReader(options)
	check(err)
	return reader
}

func send(producer pulsar.Producer, message pulsar.ProducerMessage) pulsar.MessageID {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	id, err := producer.Send(ctx, &message)
	check(err)
	return id
}

// sendNumbers publishes "0", "1", ... and returns their ids when all are stored.
func sendNumbers(producer pulsar.Producer, count int, key func(int) string) []pulsar.MessageID {
	ids := make([]pulsar.MessageID, count)
	var failed error
	var once sync.Once
	for i := range count {
		message := pulsar.ProducerMessage{Payload: fmt.Append(nil, i)}
		if key != nil {
			message.Key = key(i)
		}
		producer.SendAsync(context.Background(), &message,
			func(id pulsar.MessageID, _ *pulsar.ProducerMessage, err error) {
				ids[i] = id
				if err != nil {
					once.Do(func() { failed = err })
				}
			})
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	check(producer.FlushWithCtx(ctx))
	check(failed)
	return ids
}

func receive(consumer pulsar.Consumer) pulsar.Message {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	message, err := consumer.Receive(ctx)
	check(err)
	return message
}

func receiveText(consumer pulsar.Consumer) string {
	message := receive(consumer)
	check(consumer.Ack(message))
	return string(message.Payload())
}

func expectNothing(consumer pulsar.Consumer) {
	ctx, cancel := context.WithTimeout(context.Background(), quiet)
	defer cancel()
	if message, err := consumer.Receive(ctx); err == nil {
		panic(failure(fmt.Sprintf("unexpected message %s: %q", message.ID(), message.Payload())))
	}
}

func next(reader pulsar.Reader) string {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	message, err := reader.Next(ctx)
	check(err)
	return string(message.Payload())
}
