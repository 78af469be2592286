package event_test

import (
	"fmt"

	"belfry/pkg/event"
	"belfry/pkg/object"
)

// A program that receives an event from the log decodes its envelope.
func Example() {
	e, err := event.Decode(
		[]byte(`{"id":"e1","event":"Store.Updated","store":"Books","uuid":"emma","revision":"1763784000000000",` +
			`"actor":null,"origin":"http","object":{"title":"Emma"},"previous":{"title":"Ema"},"ctx":{}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	before, _ := e.Previous.Text("title")
	fmt.Println(e.Event, e.Store, e.UUID, e.Revision, before, string(e.Object))
	// Output: Store.Updated Books emma 1763784000000000 Ema {"title":"Emma"}
}

func ExampleEnvelope_Append() {
	e := event.Envelope{ID: "e1", Event: event.StoreSaved, Store: "Books", UUID: "emma", Revision: 7,
		Origin: event.OriginHTTP}
	fmt.Println(string(e.Append(nil)))
	// Output:
	// {"id":"e1","event":"Store.Saved","time":"","store":"Books","uuid":"emma","revision":"7","actor":null,"origin":"http","ctx":{}}
}

func ExampleSubject() {
	fmt.Println(event.Subject(event.StoreSaved, "Users", "ada"))
	// Output: events.27.Store.Saved.Users.ada
}

func ExampleFilter() {
	fmt.Println(event.Filter(event.StoreDeleted, "Books"))
	fmt.Println(event.Filter(event.Register, "*"))
	// Output:
	// events.*.Store.Deleted.Books.*
	// events.*.Register.*.*
}

func ExamplePartition() {
	fmt.Println(event.Partition("ada"), event.Partition("emma"), event.Partitions)
	// Output: 27 29 32
}

func ExampleToken() {
	token := event.Token("ada@example.com")
	fmt.Println(token, event.FromToken(token))
	// Output: ada@example%2Ecom ada@example.com
}

func ExampleTraceParent() {
	fmt.Println(event.TraceParent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01") != "")
	fmt.Println(event.TraceParent("not a trace") != "")
	// Output:
	// true
	// false
}

func ExampleEnvelope() {
	title := object.Object{"title": []byte(`"Emma"`)}
	e := event.Envelope{ID: "e2", Event: event.StoreSaved, Store: "Books", UUID: "emma", Object: title.Encode()}
	fmt.Println(string(e.Object))
	// Output: {"title":"Emma"}
}
