package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/nats-io/nats.go"

	"belfry/pkg/client"
	"belfry/pkg/errs"
	"belfry/pkg/wire"
	"belfry/test/kit/natsserver"
)

// exampleConn connects to a server with a fixed reply for each operation; a program
// connects to belfry's bus.
func exampleConn() (*nats.Conn, func()) {
	conn, stop := natsserver.Example()
	emma := `{"uuid":"emma","title":"Emma","year":1815}`
	for op, reply := range map[string]string{
		wire.Save: `{"revision":1,"object":` + emma + `}`, wire.Get: `{"revision":1,"object":` + emma + `}`,
		wire.Update: `{"revision":2,"object":{"uuid":"emma","title":"Emma","year":1816}}`,
		wire.List:   `{"objects":[` + emma + `]}`, wire.Exists: `{"exists":true}`, wire.Delete: `{}`,
	} {
		if _, err := conn.Subscribe(wire.Subject("Books", op),
			func(m *nats.Msg) { _ = m.Respond([]byte(reply)) }); err != nil {
			log.Fatal(err)
		}
	}
	return conn, stop
}

type Book struct {
	UUID  string `json:"uuid,omitempty"`
	Title string `json:"title"`
	Year  int    `json:"year"`
}

func Example() {
	conn, stop := exampleConn() // nats.Connect("nats://127.0.0.1:4222")
	defer stop()
	books := client.New(conn).Store("Books")

	ctx := context.Background()
	saved, err := client.As[Book](books.Save(ctx, Book{Title: "Emma", Year: 1815}))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(saved.UUID, saved.Title)
	if err := books.Delete(ctx, saved.UUID, client.WithKey("cleanup-"+saved.UUID)); err != nil {
		fmt.Println(err)
	}
	// Output: emma Emma
}

func ExampleStore_List() {
	conn, stop := exampleConn()
	defer stop()
	books := client.New(conn).Store("Books")
	for book, err := range books.List(context.Background(), client.Query{Filter: "year >= 1800", Sort: "year"}) {
		if err != nil {
			fmt.Println(err, errors.Is(err, errs.Invalid)) // no index for the filter, for instance
			return
		}
		title, _ := book.Text("title")
		fmt.Println(title)
	}
	// Output: Emma
}

func ExampleStore_Update() {
	conn, stop := exampleConn()
	defer stop()
	books := client.New(conn).Store("Books")
	ctx := context.Background()
	stored, err := books.Get(ctx, "emma")
	if err != nil {
		fmt.Println(err)
		return
	}
	// Only if nobody has changed the book since: else the error is a Mismatch.
	updated, err := client.As[Book](books.Update(ctx, map[string]any{"uuid": "emma", "year": 1816},
		client.AtRevision(stored.Revision)))
	fmt.Println(updated.Year, err)
	// Output: 1816 <nil>
}

func ExampleStore_Exists() {
	conn, stop := exampleConn()
	defer stop()
	found, err := client.New(conn).Store("Books").Exists(context.Background(), "emma")
	fmt.Println(found, err)
	// Output: true <nil>
}

func ExampleStored_Into() {
	conn, stop := exampleConn()
	defer stop()
	stored, err := client.New(conn).Store("Books").Get(context.Background(), "emma")
	if err != nil {
		fmt.Println(err)
		return
	}
	var book Book
	fmt.Println(stored.Into(&book), stored.Revision, book.Year)
	// Output: <nil> 1 1815
}
