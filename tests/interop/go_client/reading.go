package main

import (
	"fmt"
	"reflect"
	"strconv"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
)

func init() {
	register("reader", reader)
	register("reader_inside_a_batch", readerInsideABatch)
	register("reader_seek", readerSeek)
	register("reader_of_partitions", readerOfPartitions)
	register("table_view", tableView)
	register("table_view_of_bytes", tableViewOfBytes)
}

func reader(r *bench) {
	topic := r.topic("t")
	ids := sendNumbers(r.producer(pulsar.ProducerOptions{Topic: topic, DisableBatching: true}), 10, nil)
	all := r.reader(pulsar.ReaderOptions{Topic: topic, StartMessageID: pulsar.EarliestMessageID()})
	for i := range 10 {
		require(all.HasNext(), "nothing at %d", i)
		equal("message", next(all), strconv.Itoa(i))
	}
	require(!all.HasNext(), "something behind the end")
	end := r.reader(pulsar.ReaderOptions{Topic: topic, StartMessageID: pulsar.LatestMessageID()})
	require(!end.HasNext(), "something at the end")
	after := r.reader(pulsar.ReaderOptions{Topic: topic, StartMessageID: ids[5]})
	equal("message after an id", next(after), "6")
	at := r.reader(pulsar.ReaderOptions{Topic: topic, StartMessageID: ids[5], StartMessageIDInclusive: true})
	equal("message at an id", next(at), "5")
	last := r.reader(pulsar.ReaderOptions{
		Topic: topic, StartMessageID: pulsar.LatestMessageID(), StartMessageIDInclusive: true,
	})
	equal("last message", next(last), "9")
	restored, err := pulsar.DeserializeMessageID(ids[7].Serialize())
	check(err)
	equal("message after a stored id", next(r.reader(pulsar.ReaderOptions{Topic: topic, StartMessageID: restored})), "8")
}

func readerInsideABatch(r *bench) {
	topic := r.topic("t")
	ids := sendNumbers(r.producer(pulsar.ProducerOptions{
		Topic: topic, BatchingMaxMessages: 10, BatchingMaxPublishDelay: patience,
	}), 10, nil)
	require(ids[3].EntryID() == ids[4].EntryID() && ids[4].BatchIdx() == 4, "no batch: %v", ids)
	equal("message after an id", next(r.reader(pulsar.ReaderOptions{Topic: topic, StartMessageID: ids[4]})), "5")
	equal("message at an id", next(r.reader(pulsar.ReaderOptions{
		Topic: topic, StartMessageID: ids[4], StartMessageIDInclusive: true,
	})), "4")
	last := r.reader(pulsar.ReaderOptions{Topic: topic, StartMessageID: ids[9]})
	require(!last.HasNext(), "something behind the batch")
}

func readerSeek(r *bench) {
	topic := r.topic("t")
	producer := r.producer(pulsar.ProducerOptions{Topic: topic, DisableBatching: true})
	sendNumbers(producer, 5, nil)
	reader := r.reader(pulsar.ReaderOptions{Topic: topic, StartMessageID: pulsar.EarliestMessageID()})
	for i := range 5 {
		equal("message", next(reader), strconv.Itoa(i))
	}
	time.Sleep(10 * time.Millisecond) // the times of the two halves shall differ
	middle := time.Now()
	ids := sendNumbers(producer, 5, nil)
	check(reader.SeekByTime(middle))
	equal("message after seek by time", next(reader), "0")
	equal("next one", next(reader), "1")
	check(reader.Seek(earliest))
	equal("message after seek to the beginning", next(reader), "0")
	check(reader.Seek(ids[2]))
	text := next(reader)
	require(text == "2" || text == "3", "message after seek by id: %s", text)
	last, err := reader.GetLastMessageID()
	check(err)
	equal("last entry", last.EntryID(), ids[4].EntryID())
}

func readerOfPartitions(r *bench) {
	topic := r.topic("t")
	check(r.admin.Topics().Create(r.topicName(topic), 3))
	producer := r.producer(pulsar.ProducerOptions{Topic: topic})
	sendNumbers(producer, 30, func(i int) string { return fmt.Sprint(i) })
	reader := r.reader(pulsar.ReaderOptions{Topic: topic, StartMessageID: pulsar.EarliestMessageID()})
	seen := map[string]bool{}
	for range 30 {
		seen[next(reader)] = true
	}
	equal("messages", len(seen), 30)
}

func tableView(r *bench) {
	topic := r.topic("t")
	schema := pulsar.NewStringSchema(nil)
	producer := r.producer(pulsar.ProducerOptions{Topic: topic, Schema: schema})
	for i := range 10 {
		send(producer, pulsar.ProducerMessage{Key: fmt.Sprint("k", i%3), Value: fmt.Sprint(i)})
	}
	value := ""
	view, err := r.client.CreateTableView(pulsar.TableViewOptions{
		Topic: topic, Schema: schema, SchemaValueType: reflect.TypeOf(&value),
	})
	check(err)
	defer view.Close()
	equal("size", view.Size(), 3)
	equal("value", *view.Get("k0").(*string), "9")
	send(producer, pulsar.ProducerMessage{Key: "k3", Value: "new"})
	eventually("the new key", func() bool { return view.ContainsKey("k3") })
	equal("new value", *view.Get("k3").(*string), "new")
}

func tableViewOfBytes(r *bench) {
	topic := r.topic("t")
	schema := pulsar.NewBytesSchema(nil)
	producer := r.producer(pulsar.ProducerOptions{Topic: topic, Schema: schema})
	for i := range 10 {
		send(producer, pulsar.ProducerMessage{Key: fmt.Sprint("k", i%3), Value: fmt.Append(nil, i)})
	}
	view, err := r.client.CreateTableView(pulsar.TableViewOptions{
		Topic: topic, Schema: schema, SchemaValueType: reflect.TypeOf([]byte(nil)),
	})
	check(err)
	defer view.Close()
	equal("size", view.Size(), 3)
	equal("value", string(view.Get("k0").([]byte)), "9")
}
