// Command pocketbase serves PocketBase with a collection of books, which anybody may create, read and list: what
// bench/load compares belfry with. It reads the books from its input, a JSON object a line, and prints its address. The collection has the
// indexes that belfry's store has.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"os"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/apis"
	"github.com/pocketbase/pocketbase/core"
	_ "github.com/pocketbase/pocketbase/migrations" // of its own tables
)

// book is one of the objects.
type book struct {
	Title, Author, Body string
	Year                int
}

func main() {
	if len(os.Args) != 3 {
		fail(fmt.Errorf("usage: pocketbase ADDRESS FOLDER"))
	}
	app := core.NewBaseApp(core.BaseAppConfig{DataDir: os.Args[2]})
	if err := app.Bootstrap(); err != nil {
		fail(err)
	}
	if err := app.RunAllMigrations(); err != nil {
		fail(err)
	}
	if err := fill(app); err != nil {
		fail(err)
	}
	app.OnServe().BindFunc(func(e *core.ServeEvent) error {
		e.Router.GET("/readyz", func(r *core.RequestEvent) error { return r.NoContent(http.StatusOK) })
		fmt.Println("http://" + os.Args[1])
		return e.Next()
	})
	if err := apis.Serve(app, apis.ServeConfig{HttpAddr: os.Args[1]}); err != nil {
		fail(err)
	}
}

// fill makes the collection and its records, in transactions of many: how fast that is, is not measured.
func fill(app core.App) error {
	everybody := ""
	books := core.NewBaseCollection("books")
	books.ListRule, books.ViewRule, books.CreateRule = &everybody, &everybody, &everybody
	books.Fields.Add(
		&core.TextField{Name: "title"}, &core.TextField{Name: "author"}, &core.NumberField{Name: "year"},
		&core.TextField{Name: "body"},
	)
	books.AddIndex("idx_author", false, "author, year", "")
	books.AddIndex("idx_year", false, "year", "")
	if err := app.Save(books); err != nil {
		return err
	}
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<20)
	for number, more := 0, true; more; {
		err := app.RunInTransaction(func(tx core.App) error {
			insert := tx.DB().
				NewQuery("INSERT INTO books (id, title, author, year, body) VALUES ({:id}, {:title}, {:author}, " +
					"{:year}, {:body})").Prepare()
			defer insert.Close()
			for range 10_000 {
				if more = in.Scan(); !more {
					return in.Err()
				}
				var b book
				if err := json.Unmarshal(in.Bytes(), &b); err != nil {
					return err
				}
				number++
				insert.Bind(dbx.Params{"id": fmt.Sprintf("b%014d", number), "title": b.Title, "author": b.Author,
					"year": b.Year, "body": b.Body})
				if _, err := insert.Execute(); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	_, err := app.DB().NewQuery("ANALYZE").Execute()
	return err
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "pocketbase:", err)
	os.Exit(1)
}
