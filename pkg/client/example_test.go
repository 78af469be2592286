package client_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"

	"belfry/pkg/client"
	"belfry/pkg/errs"
)

func Example() {
	conn, err := nats.Connect("nats://127.0.0.1:4222")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	books := client.New(conn).Store("Books")

	type Book struct {
		UUID  string `json:"uuid,omitempty"`
		Title string `json:"title"`
		Year  int    `json:"year"`
	}
	ctx := context.Background()
	saved, err := client.As[Book](books.Save(ctx, Book{Title: "Emma", Year: 1815}))
	if err != nil {
		fmt.Println(err)
		return
	}
	for book, err := range books.List(ctx, client.Query{Filter: "year >= 1800", Sort: "year"}) {
		if errors.Is(err, errs.Invalid) {
			fmt.Println("no index answers that:", err)
		}
		fmt.Println(string(book["title"]))
	}
	if err := books.Delete(ctx, saved.UUID, client.WithKey("the end of "+saved.UUID)); err != nil {
		fmt.Println(err)
	}
}
