// Checks histories of metadata for linearizability.
//
// Reads one operation per line from standard input and prints a verdict. The exit code is 0 if there is an order of
// all operations that explains what each client saw, 1 if there is none, and 2 if that was not decided.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"sort"
	"time"

	"github.com/anishathalye/porcupine"
)

const (
	linearizable = iota
	notLinearizable
	undecided

	timeout = 60 * time.Second
	shown   = 12 // operations of a violation
	never   = int64(math.MaxInt64)
)

var model = porcupine.Model{
	Partition: byKey,
	Init:      func() interface{} { return node{} },
	Step: func(state, input, _ interface{}) (bool, interface{}) {
		return state.(node).step(input.(*operation))
	},
}

func main() {
	history, err := read(os.Stdin)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(undecided)
	}
	os.Exit(check(history, os.Stdout))
}

func read(lines io.Reader) ([]porcupine.Operation, error) {
	decoder := json.NewDecoder(lines)
	decoder.DisallowUnknownFields()
	var history []porcupine.Operation
	for {
		op := &operation{}
		err := decoder.Decode(op)
		if errors.Is(err, io.EOF) {
			return history, nil
		}
		if err != nil {
			return nil, fmt.Errorf("operation %d: %w", len(history)+1, err)
		}
		if err := op.check(); err != nil {
			return nil, fmt.Errorf("operation %d: %w", len(history)+1, err)
		}
		end := never
		if op.Return != nil {
			end = *op.Return
		}
		history = append(history, porcupine.Operation{Input: op, Call: op.Call, Return: end})
	}
}

func check(history []porcupine.Operation, out io.Writer) int {
	partitions := byKey(history)
	for _, partition := range partitions {
		switch porcupine.CheckOperationsTimeout(model, partition, timeout) {
		case porcupine.Illegal:
			describe(partition, out)
			return notLinearizable
		case porcupine.Unknown:
			fmt.Fprintf(out, "undecided within %s: %s, %d operations\n", timeout, key(partition[0]), len(partition))
			return undecided
		}
	}
	fmt.Fprintf(out, "linearizable: %d operations of %d keys\n", len(history), len(partitions))
	return linearizable
}

// describe prints the first answer that no order explains, and the longest order of what was before.
func describe(partition []porcupine.Operation, out io.Writer) {
	answered := []porcupine.Operation{}
	for _, each := range partition {
		if each.Return != never {
			answered = append(answered, each)
		}
	}
	sort.Slice(answered, func(i, j int) bool { return answered[i].Return < answered[j].Return })
	first := sort.Search(len(answered)-1, func(i int) bool {
		return porcupine.CheckOperationsTimeout(model, until(partition, answered[i].Return), timeout) != porcupine.Ok
	})
	before := until(partition, answered[first].Return)
	_, found := porcupine.CheckOperationsVerbose(model, before, timeout)
	explained := longest(found)
	state := node{}
	for _, each := range explained {
		_, state = state.step(each.Input.(*operation))
	}
	fmt.Fprintf(out, "not linearizable: %s, after %d of %d operations\n", key(partition[0]), len(before), len(partition))
	fmt.Fprintln(out, "the first answer that no order explains:")
	show(answered[first:first+1], out)
	fmt.Fprintf(out, "the end of the longest order, %d operations, which leaves %+v:\n", len(explained), state)
	show(explained[max(0, len(explained)-shown):], out)
}

// until returns the part of a history that had begun by a moment. What was not answered then is unknown.
func until(history []porcupine.Operation, moment int64) []porcupine.Operation {
	var part []porcupine.Operation
	for _, each := range history {
		op := *each.Input.(*operation)
		switch {
		case each.Return <= moment:
			part = append(part, each)
		case each.Call <= moment && op.Kind != "read" && op.Kind != "claim":
			op.Outcome = "unknown"
			part = append(part, porcupine.Operation{Input: &op, Call: each.Call, Return: never})
		}
	}
	return part
}

func show(operations []porcupine.Operation, out io.Writer) {
	for _, each := range operations {
		line, _ := json.Marshal(each.Input)
		fmt.Fprintf(out, "  %s\n", line)
	}
}

func longest(found porcupine.LinearizationInfo) []porcupine.Operation {
	var best []porcupine.Operation
	for _, each := range found.PartialLinearizationsOperations()[0] {
		if len(each) > len(best) {
			best = each
		}
	}
	return best
}

func byKey(history []porcupine.Operation) [][]porcupine.Operation {
	places := map[string]int{}
	var partitions [][]porcupine.Operation
	for _, each := range history {
		place, known := places[key(each)]
		if !known {
			place = len(partitions)
			places[key(each)] = place
			partitions = append(partitions, nil)
		}
		partitions[place] = append(partitions[place], each)
	}
	return partitions
}

func key(of porcupine.Operation) string {
	return of.Input.(*operation).Key
}
