package main

import (
	"fmt"
	"math"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
)

// The positions of the package have no partition, which Seek insists on.
var (
	earliest = pulsar.NewMessageID(-1, -1, -1, 0)
	latest   = pulsar.NewMessageID(math.MaxInt64, math.MaxInt64, -1, 0)
)

func init() {
	for _, each := range []struct {
		name string
		kind pulsar.SubscriptionType
	}{
		{"exclusive", pulsar.Exclusive}, {"shared", pulsar.Shared},
		{"failover", pulsar.Failover}, {"key_shared", pulsar.KeyShared},
	} {
		register(each.name+"_batched", func(r *bench) { exchange(r, each.kind, true) })
		register(each.name+"_unbatched", func(r *bench) { exchange(r, each.kind, false) })
	}
	register("exclusive_is_busy", exclusiveIsBusy)
	register("failover_takes_over", failoverTakesOver)
	register("key_shared_keeps_order", keySharedKeepsOrder)
	register("key_shared_sticky_ranges", keySharedStickyRanges)
	register("cumulative_acknowledgement", cumulativeAcknowledgement)
	register("batch_index_acknowledgement", batchIndexAcknowledgement)
	register("acknowledgement_with_response", acknowledgementWithResponse)
	register("negative_acknowledgement", negativeAcknowledgement)
	register("dead_letters", deadLetters)
	register("retry_letters", retryLetters)
	register("delayed_delivery", delayedDelivery)
	register("zero_queue", zeroQueue)
	register("several_topics", severalTopics)
	register("pattern", pattern)
	register("seek", seek)
	register("unsubscribe", unsubscribe)
	register("subscription_survives_unloading", subscriptionSurvivesUnloading)
}

func exchange(r *bench, kind pulsar.SubscriptionType, batched bool) {
	topic := r.topic("t")
	consumer := r.consumer(pulsar.ConsumerOptions{Topic: topic, Type: kind})
	producer := r.producer(pulsar.ProducerOptions{
		Topic: topic, DisableBatching: !batched, BatcherBuilderType: pulsar.KeyBasedBatchBuilder,
	})
	sendNumbers(producer, 500, func(i int) string { return fmt.Sprint("k", i%7) })
	seen := map[string]bool{}
	for range 500 {
		seen[receiveText(consumer)] = true
	}
	equal("messages", len(seen), 500)
	expectNothing(consumer)
	eventually("everything acknowledged", func() bool {
		stats, err := r.admin.Topics().GetStats(r.topicName(topic))
		return err == nil && stats.Subscriptions["s"].MsgBacklog == 0
	})
}

func exclusiveIsBusy(r *bench) {
	topic := r.topic("t")
	first := r.consumer(pulsar.ConsumerOptions{Topic: topic})
	for _, kind := range []pulsar.SubscriptionType{pulsar.Exclusive, pulsar.Shared} {
		_, err := r.client.Subscribe(pulsar.ConsumerOptions{Topic: topic, SubscriptionName: "s", Type: kind})
		require(err != nil && strings.Contains(err.Error(), "ConsumerBusy"), "second consumer: %v", err)
	}
	first.Close()
	r.consumer(pulsar.ConsumerOptions{Topic: topic, Type: pulsar.Shared}).Close()
}

func failoverTakesOver(r *bench) {
	topic := r.topic("t")
	producer := r.producer(pulsar.ProducerOptions{Topic: topic, DisableBatching: true})
	options := pulsar.ConsumerOptions{
		Topic: topic, Type: pulsar.Failover, SubscriptionInitialPosition: pulsar.SubscriptionPositionEarliest,
	}
	options.Name = "a"
	first := r.consumer(options)
	sendNumbers(producer, 10, nil)
	for i := range 5 {
		equal("message", receiveText(first), strconv.Itoa(i))
	}
	first.Close()
	options.Name = "b"
	second := r.consumer(options)
	for i := 5; i < 10; i++ {
		equal("message after the change", receiveText(second), strconv.Itoa(i))
	}
}

// keySharedKeepsOrder lets consumers come and go; no key is ever out of order or at two of them at once.
func keySharedKeepsOrder(r *bench) {
	const messages, keys = 600, 20
	topic := r.topic("t")
	producer := r.producer(pulsar.ProducerOptions{Topic: topic, BatcherBuilderType: pulsar.KeyBasedBatchBuilder})
	var lock sync.Mutex
	latest, owner, received := map[string]int{}, map[string]int{}, map[int]bool{}
	problem := ""
	var working sync.WaitGroup
	work := func(number, limit int) {
		defer working.Done()
		consumer := r.consumer(pulsar.ConsumerOptions{
			Topic: topic, Type: pulsar.KeyShared, ReceiverQueueSize: 20, Name: fmt.Sprint("c", number),
			SubscriptionInitialPosition: pulsar.SubscriptionPositionEarliest,
		})
		defer consumer.Close()
		for range limit {
			lock.Lock()
			done := len(received) == messages || problem != ""
			lock.Unlock()
			if done {
				return
			}
			select {
			case message := <-consumer.Chan():
				index, _ := strconv.Atoi(string(message.Payload()))
				lock.Lock()
				if at, held := owner[message.Key()]; held && at != number {
					problem = fmt.Sprintf("key %s is at %d and %d at once", message.Key(), at, number)
				}
				if before, seen := latest[message.Key()]; seen && before >= index && !received[index] {
					problem = fmt.Sprintf("key %s: %d after %d", message.Key(), index, before)
				}
				owner[message.Key()] = number
				lock.Unlock()
				time.Sleep(time.Millisecond)
				lock.Lock()
				latest[message.Key()], received[index] = max(latest[message.Key()], index), true
				delete(owner, message.Key())
				lock.Unlock()
				check(consumer.Ack(message))
			case <-time.After(100 * time.Millisecond):
			}
		}
	}
	working.Add(1)
	go work(0, 1<<30)
	sendNumbers(producer, messages, func(i int) string { return fmt.Sprint("k", i%keys) })
	for number := 1; number <= 4; number++ {
		working.Add(1)
		go work(number, 40)
	}
	done := make(chan struct{})
	go func() { working.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(patience):
	}
	lock.Lock()
	defer lock.Unlock()
	require(problem == "", "%s", problem)
	equal("messages", len(received), messages)
}

func keySharedStickyRanges(r *bench) {
	topic := r.topic("t")
	options := func(name string, ranges ...int) pulsar.ConsumerOptions {
		policy, err := pulsar.NewKeySharedPolicySticky(ranges)
		check(err)
		return pulsar.ConsumerOptions{
			Topic: topic, SubscriptionName: "s", Type: pulsar.KeyShared, KeySharedPolicy: policy, Name: name,
		}
	}
	low := r.consumer(options("low", 0, 32767))
	_, err := r.client.Subscribe(options("clash", 30000, 40000))
	require(err != nil, "overlapping ranges are accepted")
	high := r.consumer(options("high", 32768, 65535))
	producer := r.producer(pulsar.ProducerOptions{Topic: topic, BatcherBuilderType: pulsar.KeyBasedBatchBuilder})
	sendNumbers(producer, 200, func(i int) string { return fmt.Sprint("k", i%20) })
	at := map[string]string{}
	for range 200 {
		var message pulsar.ConsumerMessage
		select {
		case message = <-low.Chan():
		case message = <-high.Chan():
		case <-time.After(patience):
			panic(failure("messages are missing"))
		}
		name := message.Consumer.Name()
		require(at[message.Key()] == "" || at[message.Key()] == name, "key %s at both", message.Key())
		at[message.Key()] = name
		check(message.Consumer.Ack(message))
	}
	consumers := map[string]bool{}
	for _, name := range at {
		consumers[name] = true
	}
	equal("consumers with keys", len(consumers), 2)
}

func cumulativeAcknowledgement(r *bench) {
	topic := r.topic("t")
	options := pulsar.ConsumerOptions{
		Topic: topic, SubscriptionInitialPosition: pulsar.SubscriptionPositionEarliest, AckWithResponse: true,
	}
	consumer := r.consumer(options)
	sendNumbers(r.producer(pulsar.ProducerOptions{Topic: topic}), 20, nil)
	for i := range 20 {
		message := receive(consumer)
		if i == 9 {
			check(consumer.AckCumulative(message))
		}
	}
	consumer.Close()
	options.EnableBatchIndexAcknowledgment = true
	consumer = r.consumer(options)
	// A batch that is acknowledged in part only comes again from its beginning.
	first, err := strconv.Atoi(receiveText(consumer))
	check(err)
	require(first <= 10, "the first one left is %d", first)
}

func batchIndexAcknowledgement(r *bench) {
	topic := r.topic("t")
	options := pulsar.ConsumerOptions{
		Topic: topic, Type: pulsar.Shared, EnableBatchIndexAcknowledgment: true, AckWithResponse: true,
	}
	consumer := r.consumer(options)
	producer := r.producer(pulsar.ProducerOptions{
		Topic: topic, BatchingMaxMessages: 10, BatchingMaxPublishDelay: patience,
	})
	sendNumbers(producer, 10, nil)
	for i := range 10 {
		message := receive(consumer)
		if i%2 == 0 {
			check(consumer.Ack(message))
		}
	}
	consumer.Close()
	consumer = r.consumer(options)
	for _, want := range []string{"1", "3", "5", "7", "9"} {
		equal("message that was left", receiveText(consumer), want)
	}
	expectNothing(consumer)
}

func acknowledgementWithResponse(r *bench) {
	topic := r.topic("t")
	consumer := r.consumer(pulsar.ConsumerOptions{Topic: topic, AckWithResponse: true})
	sendNumbers(r.producer(pulsar.ProducerOptions{Topic: topic, DisableBatching: true}), 20, nil)
	var ids []pulsar.MessageID
	for range 20 {
		ids = append(ids, receive(consumer).ID())
	}
	check(consumer.AckIDList(ids))
	stats, err := r.admin.Topics().GetStats(r.topicName(topic))
	check(err)
	equal("backlog", stats.Subscriptions["s"].MsgBacklog, 0)
}

func negativeAcknowledgement(r *bench) {
	topic := r.topic("t")
	consumer := r.consumer(pulsar.ConsumerOptions{
		Topic: topic, Type: pulsar.Shared, NackRedeliveryDelay: 100 * time.Millisecond,
	})
	send(r.producer(pulsar.ProducerOptions{Topic: topic}), pulsar.ProducerMessage{Payload: []byte("x")})
	for i := range uint32(4) {
		message := receive(consumer)
		equal("redelivery count", message.RedeliveryCount(), i)
		if i < 3 {
			consumer.Nack(message)
		} else {
			check(consumer.Ack(message))
		}
	}
	expectNothing(consumer)
}

func deadLetters(r *bench) {
	topic, deadLetters := r.topic("t"), r.topic("dead-letters")
	consumer := r.consumer(pulsar.ConsumerOptions{
		Topic: topic, Type: pulsar.Shared, NackRedeliveryDelay: 100 * time.Millisecond,
		DLQ: &pulsar.DLQPolicy{MaxDeliveries: 2, DeadLetterTopic: deadLetters, InitialSubscriptionName: "reader"},
	})
	producer := r.producer(pulsar.ProducerOptions{Topic: topic, DisableBatching: true})
	id := send(producer, pulsar.ProducerMessage{Payload: []byte("bad"), Properties: map[string]string{"mine": "1"}})
	send(producer, pulsar.ProducerMessage{Payload: []byte("good")})
	for bad, good := 0, 0; bad < 2 || good < 1; {
		message := receive(consumer)
		if string(message.Payload()) == "good" {
			check(consumer.Ack(message))
			good++
			continue
		}
		consumer.Nack(message)
		bad++
	}
	expectNothing(consumer)
	reader := r.consumer(pulsar.ConsumerOptions{Topic: deadLetters, SubscriptionName: "reader", Type: pulsar.Shared})
	letter := receive(reader)
	equal("payload", string(letter.Payload()), "bad")
	equal("property of the sender", letter.Properties()["mine"], "1")
	equal("topic of the original", letter.Properties()["REAL_TOPIC"], topic)
	require(strings.HasPrefix(letter.Properties()["ORIGIN_MESSAGE_ID"], fmt.Sprintf("%d:%d:", id.LedgerID(), id.EntryID())),
		"id of the original: %s", letter.Properties()["ORIGIN_MESSAGE_ID"])
}

func retryLetters(r *bench) {
	topic := r.topic("t")
	consumer := r.consumer(pulsar.ConsumerOptions{
		Topic: topic, Type: pulsar.Shared, RetryEnable: true, DLQ: &pulsar.DLQPolicy{MaxDeliveries: 2},
	})
	send(r.producer(pulsar.ProducerOptions{Topic: topic}), pulsar.ProducerMessage{Payload: []byte("x")})
	for i := range 3 {
		message := receive(consumer)
		if i > 0 {
			equal("times consumed again", message.Properties()["RECONSUMETIMES"], strconv.Itoa(i))
			equal("topic of the original", message.Properties()["REAL_TOPIC"], topic)
		}
		consumer.ReconsumeLater(message, 100*time.Millisecond)
	}
	reader := r.consumer(pulsar.ConsumerOptions{
		Topic: topic + "-s-DLQ", SubscriptionName: "reader",
		SubscriptionInitialPosition: pulsar.SubscriptionPositionEarliest,
	})
	equal("dead letter", receiveText(reader), "x")
}

func delayedDelivery(r *bench) {
	topic := r.topic("t")
	shared := r.consumer(pulsar.ConsumerOptions{Topic: topic, SubscriptionName: "shared", Type: pulsar.Shared})
	exclusive := r.consumer(pulsar.ConsumerOptions{Topic: topic, SubscriptionName: "exclusive"})
	producer := r.producer(pulsar.ProducerOptions{Topic: topic})
	due := time.Now().Add(8 * time.Second)
	send(producer, pulsar.ProducerMessage{Payload: []byte("late"), DeliverAt: due})
	send(producer, pulsar.ProducerMessage{Payload: []byte("soon")})
	equal("first of Exclusive", receiveText(exclusive), "late")
	equal("first of Shared", receiveText(shared), "soon")
	equal("second of Shared", receiveText(shared), "late")
	// The broker looks for due messages every second, and may be early by that much.
	require(time.Now().After(due.Add(-1500*time.Millisecond)), "it came %s early", time.Until(due))
}

func zeroQueue(r *bench) {
	topic := r.topic("t")
	consumer := r.consumer(pulsar.ConsumerOptions{Topic: topic, EnableZeroQueueConsumer: true, Type: pulsar.Shared})
	sendNumbers(r.producer(pulsar.ProducerOptions{Topic: topic, DisableBatching: true}), 10, nil)
	for i := range 10 {
		equal("message", receiveText(consumer), strconv.Itoa(i))
	}
}

func severalTopics(r *bench) {
	topics := []string{r.topic("a"), r.topic("b")}
	consumer := r.consumer(pulsar.ConsumerOptions{Topics: topics})
	for _, topic := range topics {
		send(r.producer(pulsar.ProducerOptions{Topic: topic}), pulsar.ProducerMessage{Payload: []byte(topic)})
	}
	var seen []string
	for range topics {
		seen = append(seen, receiveText(consumer))
	}
	sort.Strings(seen)
	require(seen[0] == topics[0] && seen[1] == topics[1], "messages of %v", seen)
}

func pattern(r *bench) {
	first := r.producer(pulsar.ProducerOptions{Topic: r.topic("a")})
	consumer := r.consumer(pulsar.ConsumerOptions{
		TopicsPattern: r.topic(".*"), AutoDiscoveryPeriod: 500 * time.Millisecond,
		SubscriptionInitialPosition: pulsar.SubscriptionPositionEarliest,
	})
	send(first, pulsar.ProducerMessage{Payload: []byte("a")})
	equal("message of the first topic", receiveText(consumer), "a")
	send(r.producer(pulsar.ProducerOptions{Topic: r.topic("b")}), pulsar.ProducerMessage{Payload: []byte("b")})
	equal("message of the topic that came later", receiveText(consumer), "b")
}

func seek(r *bench) {
	topic := r.topic("t")
	consumer := r.consumer(pulsar.ConsumerOptions{Topic: topic, StartMessageIDInclusive: true})
	producer := r.producer(pulsar.ProducerOptions{Topic: topic, DisableBatching: true})
	ids := sendNumbers(producer, 10, nil)
	for range 10 {
		receiveText(consumer)
	}
	check(consumer.Seek(ids[4]))
	equal("message after seek", receiveText(consumer), "4")
	check(consumer.Seek(earliest))
	equal("message after seek to the beginning", receiveText(consumer), "0")
	check(consumer.Seek(latest))
	expectNothing(consumer)
	check(consumer.SeekByTime(time.Now().Add(-time.Hour)))
	equal("message after seek by time", receiveText(consumer), "0")
	last, err := consumer.GetLastMessageIDs()
	check(err)
	equal("last entry", last[0].EntryID(), ids[9].EntryID())
}

func unsubscribe(r *bench) {
	topic := r.topic("t")
	consumer := r.consumer(pulsar.ConsumerOptions{Topic: topic})
	check(consumer.Unsubscribe())
	names, err := r.admin.Subscriptions().List(r.topicName(topic))
	check(err)
	equal("subscriptions", len(names), 0)
}

func subscriptionSurvivesUnloading(r *bench) {
	topic := r.topic("t")
	consumer := r.consumer(pulsar.ConsumerOptions{
		Topic: topic, Type: pulsar.Shared, AckWithResponse: true,
		SubscriptionProperties: map[string]string{"team": "a"},
	})
	producer := r.producer(pulsar.ProducerOptions{Topic: topic, DisableBatching: true})
	sendNumbers(producer, 20, nil)
	for i := range 20 {
		message := receive(consumer)
		if i%3 == 0 {
			check(consumer.Ack(message))
		}
	}
	check(r.admin.Topics().Unload(r.topicName(topic)))
	left := map[string]bool{}
	for range 13 {
		left[receiveText(consumer)] = true
	}
	require(len(left) == 13 && !left["0"] && !left["3"], "left are %v", left)
	send(producer, pulsar.ProducerMessage{Payload: []byte("more")})
	equal("message after that", receiveText(consumer), "more")
	stats, err := r.admin.Topics().GetStats(r.topicName(topic))
	check(err)
	equal("type", stats.Subscriptions["s"].SubType, "Shared")
	equal("consumers", len(stats.Subscriptions["s"].Consumers), 1)
}
