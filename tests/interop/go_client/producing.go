package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
)

func init() {
	register("compression", compression)
	register("chunks", chunks)
	register("access_modes", accessModes)
	register("names_are_unique", namesAreUnique)
	register("deduplication", deduplication)
	register("deduplication_of_batches", deduplicationOfBatches)
	register("message_fields", messageFields)
	register("partitions", partitions)
	register("terminated", terminated)
	register("too_large", tooLarge)
	register("transactions_refused", transactionsRefused)
}

func compression(r *bench) {
	for _, kind := range []pulsar.CompressionType{pulsar.NoCompression, pulsar.LZ4, pulsar.ZLib, pulsar.ZSTD} {
		topic := r.topic(fmt.Sprint(kind))
		consumer := r.consumer(pulsar.ConsumerOptions{Topic: topic})
		producer := r.producer(pulsar.ProducerOptions{Topic: topic, CompressionType: kind})
		text := strings.Repeat("pulsar ", 1000)
		send(producer, pulsar.ProducerMessage{Payload: []byte(text)})
		require(receiveText(consumer) == text, "compression %v changes the payload", kind)
		consumer.Close()
		producer.Close()
	}
}

func chunks(r *bench) {
	topic := r.topic("t")
	consumer := r.consumer(pulsar.ConsumerOptions{Topic: topic})
	producer := r.producer(pulsar.ProducerOptions{
		Topic: topic, EnableChunking: true, DisableBatching: true, ChunkMaxMessageSize: 100_000,
	})
	payload := bytes.Repeat([]byte("0123456789"), 100_000)
	id := send(producer, pulsar.ProducerMessage{Payload: payload})
	message := receive(consumer)
	require(bytes.Equal(message.Payload(), payload), "the chunks do not make the message")
	equal("id", message.ID().String(), id.String())
	check(consumer.Ack(message))
	send(producer, pulsar.ProducerMessage{Payload: []byte("small")})
	equal("message behind the chunks", receiveText(consumer), "small")
}

func accessModes(r *bench) {
	topic := r.topic("t")
	first := r.producer(pulsar.ProducerOptions{Topic: topic, ProducerAccessMode: pulsar.ProducerAccessModeExclusive})
	_, err := r.client.CreateProducer(pulsar.ProducerOptions{
		Topic: topic, ProducerAccessMode: pulsar.ProducerAccessModeExclusive,
	})
	require(errors.Is(err, pulsar.ErrProducerFenced) || err != nil && strings.Contains(err.Error(), "ProducerFenced"),
		"second exclusive producer: %v", err)
	waiting := make(chan pulsar.Producer, 1)
	go func() {
		producer, err := r.client.CreateProducer(pulsar.ProducerOptions{
			Topic: topic, ProducerAccessMode: pulsar.ProducerAccessModeWaitForExclusive,
		})
		if err == nil {
			waiting <- producer
		}
	}()
	select {
	case <-waiting:
		panic(failure("a waiting producer did not wait"))
	case <-time.After(quiet):
	}
	send(first, pulsar.ProducerMessage{Payload: []byte("a")})
	first.Close()
	select {
	case second := <-waiting:
		send(second, pulsar.ProducerMessage{Payload: []byte("b")})
		second.Close()
	case <-time.After(patience):
		panic(failure("the waiting producer was not let in"))
	}
	r.producer(pulsar.ProducerOptions{Topic: topic}).Close()
}

func namesAreUnique(r *bench) {
	topic := r.topic("t")
	first := r.producer(pulsar.ProducerOptions{Topic: topic, Name: "mine"})
	tries := uint(0)
	_, err := r.client.CreateProducer(pulsar.ProducerOptions{Topic: topic, Name: "mine", MaxReconnectToBroker: &tries})
	require(err != nil && strings.Contains(err.Error(), "ProducerBusy"), "second producer of that name: %v", err)
	first.Close()
	r.producer(pulsar.ProducerOptions{Topic: topic, Name: "mine"}).Close()
}

func deduplication(r *bench) {
	topic := r.topic("t")
	check(r.admin.Topics().Create(r.topicName(topic), 0))
	check(r.admin.Topics().SetDeduplicationStatus(r.topicName(topic), true))
	eventually("de-duplication", func() bool {
		enabled, err := r.admin.Topics().GetDeduplicationStatus(r.topicName(topic))
		return err == nil && enabled
	})
	consumer := r.consumer(pulsar.ConsumerOptions{Topic: topic})
	producer := r.producer(pulsar.ProducerOptions{Topic: topic, Name: "p", DisableBatching: true})
	for _, sequence := range []int64{10, 11, 11, 10, 12} {
		message := pulsar.ProducerMessage{Payload: fmt.Append(nil, sequence), SequenceID: &sequence}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		_, err := producer.Send(ctx, &message)
		cancel()
		check(err)
	}
	for _, want := range []string{"10", "11", "12"} {
		equal("message", receiveText(consumer), want)
	}
	expectNothing(consumer)
}

func deduplicationOfBatches(r *bench) {
	for _, kind := range []pulsar.BatcherBuilderType{pulsar.DefaultBatchBuilder, pulsar.KeyBasedBatchBuilder} {
		topic := r.topic(fmt.Sprint(kind))
		check(r.admin.Topics().Create(r.topicName(topic), 0))
		check(r.admin.Topics().SetDeduplicationStatus(r.topicName(topic), true))
		eventually("de-duplication", func() bool {
			enabled, err := r.admin.Topics().GetDeduplicationStatus(r.topicName(topic))
			return err == nil && enabled
		})
		consumer := r.consumer(pulsar.ConsumerOptions{Topic: topic})
		count, wanted := 0, map[string]bool{}
		for _, keys := range []string{"aaabaa", "ab", "bbbbbbba", "c", "abcabc"} {
			producer := r.producer(pulsar.ProducerOptions{
				Topic: topic, Name: "p", BatcherBuilderType: kind, BatchingMaxPublishDelay: time.Second,
			})
			answers := make(chan error, len(keys))
			for _, key := range keys {
				text := fmt.Sprint(count)
				wanted[text], count = true, count+1
				message := pulsar.ProducerMessage{Payload: []byte(text), Key: string(key)}
				producer.SendAsync(context.Background(), &message,
					func(_ pulsar.MessageID, _ *pulsar.ProducerMessage, err error) { answers <- err })
			}
			check(producer.Flush())
			for range keys {
				check(<-answers)
			}
			producer.Close()
		}
		for range count {
			text := receiveText(consumer)
			require(wanted[text], "message %s twice, or not sent", text)
			delete(wanted, text)
		}
		expectNothing(consumer)
	}
}

func messageFields(r *bench) {
	for _, batched := range []bool{true, false} {
		topic := r.topic(fmt.Sprint(batched))
		consumer := r.consumer(pulsar.ConsumerOptions{Topic: topic})
		producer := r.producer(pulsar.ProducerOptions{Topic: topic, Name: "p", DisableBatching: !batched})
		happened := time.UnixMilli(1_600_000_000_123)
		send(producer, pulsar.ProducerMessage{
			Payload: []byte{0, 255}, Key: "k", OrderingKey: "o", EventTime: happened,
			Properties: map[string]string{"a": "1", "ü": ""},
		})
		message := receive(consumer)
		require(bytes.Equal(message.Payload(), []byte{0, 255}), "payload %v", message.Payload())
		equal("key", message.Key(), "k")
		equal("ordering key", message.OrderingKey(), "o")
		equal("event time", message.EventTime().UnixMilli(), happened.UnixMilli())
		equal("property", message.Properties()["a"], "1")
		equal("properties", len(message.Properties()), 2)
		equal("producer", message.ProducerName(), "p")
		equal("topic", message.Topic(), topic)
		require(time.Since(message.PublishTime()).Abs() < time.Hour, "publish time %v", message.PublishTime())
	}
}

func partitions(r *bench) {
	topic := r.topic("t")
	check(r.admin.Topics().Create(r.topicName(topic), 3))
	names, err := r.client.TopicPartitions(topic)
	check(err)
	require(len(names) == 3 && names[2] == topic+"-partition-2", "partitions %v", names)
	consumer := r.consumer(pulsar.ConsumerOptions{Topic: topic})
	producer := r.producer(pulsar.ProducerOptions{
		Topic: topic, PartitionsAutoDiscoveryInterval: 100 * time.Millisecond,
	})
	sendNumbers(producer, 30, func(i int) string { return fmt.Sprint(i % 10) })
	partitionOf, latest := map[string]string{}, map[string]string{}
	for range 30 {
		message := receive(consumer)
		check(consumer.Ack(message))
		known, seen := partitionOf[message.Key()]
		require(!seen || known == message.Topic(), "key %s comes from %s and %s", message.Key(), known, message.Topic())
		number := fmt.Sprintf("%02s", message.Payload())
		require(latest[message.Key()] < number, "key %s is out of order", message.Key())
		partitionOf[message.Key()], latest[message.Key()] = message.Topic(), number
	}
	check(r.admin.Topics().Update(r.topicName(topic), 5))
	key := 0
	eventually("a message on a new partition", func() bool {
		key++
		return send(producer, pulsar.ProducerMessage{Key: fmt.Sprint(key)}).PartitionIdx() >= 3
	})
}

func terminated(r *bench) {
	topic := r.topic("t")
	producer := r.producer(pulsar.ProducerOptions{Topic: topic})
	reader := r.reader(pulsar.ReaderOptions{Topic: topic, StartMessageID: pulsar.EarliestMessageID()})
	last := send(producer, pulsar.ProducerMessage{Payload: []byte("last")})
	ended, err := r.admin.Topics().Terminate(r.topicName(topic))
	check(err)
	require(ended.LedgerID == last.LedgerID() && ended.EntryID == last.EntryID(), "terminated at %v", ended)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, err = producer.Send(ctx, &pulsar.ProducerMessage{Payload: []byte("too late")})
	require(errors.Is(err, pulsar.ErrTopicTerminated) || errors.Is(err, pulsar.ErrProducerClosed),
		"message to a terminated topic: %v", err)
	equal("message", next(reader), "last")
	require(!reader.HasNext(), "there is something behind the end")
	other := newClient(r.serviceURL) // the refused message may have ended the connection
	defer other.Close()
	_, err = other.CreateProducer(pulsar.ProducerOptions{Topic: topic})
	require(err != nil && strings.Contains(err.Error(), "TopicTerminated"), "producer of a terminated topic: %v", err)
}

func tooLarge(r *bench) {
	producer := r.producer(pulsar.ProducerOptions{Topic: r.topic("t"), DisableBatching: true})
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, err := producer.Send(ctx, &pulsar.ProducerMessage{Payload: make([]byte, 6<<20)})
	equal("message of 6 MiB", result(err), pulsar.MessageTooBig)
	send(producer, pulsar.ProducerMessage{Payload: []byte("fits")})
}

func transactionsRefused(r *bench) {
	client, err := pulsar.NewClient(pulsar.ClientOptions{
		URL: r.serviceURL, EnableTransaction: true, OperationTimeout: 5 * time.Second, Logger: silent,
	})
	if err == nil {
		client.Close()
	}
	require(err != nil, "a client with transactions is let in")
	require(strings.Contains(strings.ToLower(err.Error()), "transaction"), "refused without a reason: %v", err)
}
