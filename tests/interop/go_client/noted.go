package main

import (
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
)

func init() {
	registerFor("noted", "index_and_time", indexAndTime)
}

// indexAndTime needs a broker that notes index and time with messages, and shows them.
func indexAndTime(r *bench) {
	topic := r.topic("t")
	begin := time.Now().Add(-time.Minute)
	sendNumbers(r.producer(pulsar.ProducerOptions{Topic: topic, DisableBatching: true}), 2, nil)
	sendNumbers(r.producer(pulsar.ProducerOptions{
		Topic: topic, BatchingMaxMessages: 3, BatchingMaxPublishDelay: patience,
	}), 3, nil)
	consumer := r.consumer(pulsar.ConsumerOptions{
		Topic: topic, SubscriptionInitialPosition: pulsar.SubscriptionPositionEarliest,
	})
	for want := range uint64(5) {
		message := receive(consumer)
		require(message.Index() != nil, "message %d has no index", want)
		equal("index", *message.Index(), want)
		noted := message.BrokerPublishTime()
		require(noted != nil && noted.After(begin) && noted.Before(begin.Add(2*time.Minute)), "noted at %v", noted)
	}
}
