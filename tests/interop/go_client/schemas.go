package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/apache/pulsar-client-go/pulsaradmin/pkg/utils"
)

const (
	flight = `{"type":"record","name":"Flight","fields":[{"name":"carrier","type":"string"},` +
		`{"name":"delay","type":"int"}]}`
	flightWithGate = `{"type":"record","name":"Flight","fields":[{"name":"carrier","type":"string"},` +
		`{"name":"delay","type":"int"},{"name":"gate","type":["null","string"],"default":null}]}`
	train = `{"type":"record","name":"Flight","fields":[{"name":"carrier","type":"int"}]}`
)

type flightValue struct {
	Carrier string `json:"carrier" avro:"carrier"`
	Delay   int    `json:"delay" avro:"delay"`
}

func init() {
	register("schema_avro", func(r *bench) { typed(r, pulsar.NewAvroSchema(flight, nil)) })
	register("schema_json", func(r *bench) { typed(r, pulsar.NewJSONSchema(flight, nil)) })
	register("schema_primitives", primitives)
	register("schema_bytes", bytesSchema)
	register("schema_versions", schemaVersions)
	register("schema_incompatible", schemaIncompatible)
}

func typed(r *bench, schema pulsar.Schema) {
	topic := r.topic("t")
	consumer := r.consumer(pulsar.ConsumerOptions{Topic: topic, Schema: schema})
	producer := r.producer(pulsar.ProducerOptions{Topic: topic, Schema: schema})
	send(producer, pulsar.ProducerMessage{Value: &flightValue{"UA", -3}})
	message := receive(consumer)
	var value flightValue
	check(message.GetSchemaValue(&value))
	equal("value", value, flightValue{"UA", -3})
	equal("size of the schema version", len(message.SchemaVersion()), 8)
	stored, err := r.admin.Schemas().GetSchemaInfo(topic)
	check(err)
	require(sameJSON(stored.Schema, flight), "stored schema %s", stored.Schema)
}

// sameJSON compares definitions, whose fields the client puts in another order.
func sameJSON(is []byte, want string) bool {
	var left, right any
	check(json.Unmarshal(is, &left))
	check(json.Unmarshal([]byte(want), &right))
	return reflect.DeepEqual(left, right)
}

func primitives(r *bench) {
	topic := r.topic("t")
	schema := pulsar.NewInt64Schema(nil)
	consumer := r.consumer(pulsar.ConsumerOptions{Topic: topic, Schema: schema})
	producer := r.producer(pulsar.ProducerOptions{Topic: topic, Schema: schema})
	send(producer, pulsar.ProducerMessage{Value: int64(-7)})
	var value int64
	check(receive(consumer).GetSchemaValue(&value))
	equal("value", value, -7)
	_, err := r.client.CreateProducer(pulsar.ProducerOptions{Topic: topic, Schema: pulsar.NewStringSchema(nil)})
	require(err != nil && strings.Contains(err.Error(), "IncompatibleSchema"), "another type: %v", err)
}

// bytesSchema writes with a schema that stands for none, batched and not, also to those who read without one.
func bytesSchema(r *bench) {
	schema := pulsar.NewBytesSchema(nil)
	for _, batched := range []bool{true, false} {
		topic := r.topic(fmt.Sprint(batched))
		typed := r.consumer(pulsar.ConsumerOptions{Topic: topic, SubscriptionName: "typed", Schema: schema})
		plain := r.consumer(pulsar.ConsumerOptions{Topic: topic, SubscriptionName: "plain"})
		producer := r.producer(pulsar.ProducerOptions{Topic: topic, Schema: schema, DisableBatching: !batched})
		send(producer, pulsar.ProducerMessage{Value: []byte("of the producer")})
		var value []byte
		check(receive(typed).GetSchemaValue(&value))
		equal("value", string(value), "of the producer")
		equal("payload", receiveText(plain), "of the producer")
		producer = r.producer(pulsar.ProducerOptions{Topic: topic, DisableBatching: !batched})
		send(producer, pulsar.ProducerMessage{Value: []byte("of the message"), Schema: schema})
		equal("payload", receiveText(plain), "of the message")
	}
}

func schemaVersions(r *bench) {
	topic := r.topic("t")
	first := r.producer(pulsar.ProducerOptions{Topic: topic, Schema: pulsar.NewAvroSchema(flight, nil)})
	second := r.producer(pulsar.ProducerOptions{Topic: topic, Schema: pulsar.NewAvroSchema(flightWithGate, nil)})
	reader := r.reader(pulsar.ReaderOptions{Topic: topic, StartMessageID: pulsar.EarliestMessageID()})
	send(first, pulsar.ProducerMessage{Value: &flightValue{"UA", 1}})
	send(second, pulsar.ProducerMessage{Value: map[string]any{"carrier": "DL", "delay": 2, "gate": nil}})
	require(next(reader) != "", "no payload")
	info, err := r.admin.Schemas().GetSchemaInfoWithVersion(topic)
	check(err)
	equal("newest version", info.Version, int64(1))
	old, err := r.admin.Schemas().GetSchemaInfoByVersion(topic, 0)
	check(err)
	require(sameJSON(old.Schema, flight), "first version %s", old.Schema)
	check(r.admin.Schemas().DeleteSchema(topic))
	_, err = r.admin.Schemas().GetSchemaInfo(topic)
	require(err != nil, "a deleted schema is still there")
}

func schemaIncompatible(r *bench) {
	topic := r.topic("t")
	check(r.admin.Topics().Create(r.topicName(topic), 0))
	check(r.admin.Schemas().CreateSchemaByPayload(topic, utils.PostSchemaPayload{SchemaType: "AVRO", Schema: flight}))
	_, err := r.client.CreateProducer(pulsar.ProducerOptions{Topic: topic, Schema: pulsar.NewAvroSchema(train, nil)})
	require(err != nil && strings.Contains(err.Error(), "IncompatibleSchema"), "incompatible producer: %v", err)
	_, err = r.client.Subscribe(pulsar.ConsumerOptions{
		Topic: topic, SubscriptionName: "s", Schema: pulsar.NewAvroSchema(train, nil),
	})
	require(err != nil && strings.Contains(err.Error(), "IncompatibleSchema"), "incompatible consumer: %v", err)
}
