// Command ogen uses the client that ogen makes of a document: what a program does with a store.
package main

import (
	"bytes"
	"context"
	"fmt"
	"os"

	"github.com/ogen-go/ogen/ogenerrors"

	"belfry/test/servers/clients/ogen/api"
)

func main() {
	if err := run(context.Background(), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "ogen:", err)
		os.Exit(1)
	}
}

// anonymous has no credentials.
type anonymous struct{}

func (anonymous) BearerToken(context.Context, api.OperationName) (api.BearerToken, error) {
	return api.BearerToken{}, ogenerrors.ErrSkipClientSecurity
}

func (anonymous) SessionCookie(context.Context, api.OperationName) (api.SessionCookie, error) {
	return api.SessionCookie{}, ogenerrors.ErrSkipClientSecurity
}

// is returns a reply that has to have a type.
func is[T any](what string, reply any, err error) (out T, _ error) {
	if err != nil {
		return out, fmt.Errorf("%s: %w", what, err)
	}
	out, ok := reply.(T)
	if !ok {
		return out, fmt.Errorf("%s: the reply is %T: %+v", what, reply, reply)
	}
	return out, nil
}

func run(ctx context.Context, url string) error {
	c, err := api.NewClient(url, anonymous{})
	if err != nil {
		return err
	}
	const uuid = "ogen"
	reply, err := c.CreateBooks(ctx,
		&api.BooksInput{UUID: api.NewOptString(uuid), Title: uuid, Year: api.NewOptInt(1815)}, api.CreateBooksParams{})
	made, err := is[*api.BooksHeaders]("create", reply, err)
	if err != nil {
		return err
	}
	listed, err := c.ListBooks(ctx, api.ListBooksParams{Filter: api.NewOptString(`title == "ogen"`)})
	page, err := is[*api.BooksPageHeaders]("list", listed, err)
	if err != nil {
		return err
	}
	if items := page.Response.Items; len(items) != 1 || items[0].UUID != uuid {
		return fmt.Errorf("list: %+v", items)
	}
	params := api.UpdateBooksParams{UUID: uuid, IfMatch: api.NewOptString(made.Etag)}
	updated, err := c.UpdateBooks(ctx, &api.BooksUpdate{Year: api.NewOptInt(1816)}, params)
	changed, err := is[*api.UpdateBooksOKHeaders]("update", updated, err)
	if err != nil {
		return err
	}
	if b := changed.Response; b.Title != uuid || b.Year != api.NewOptInt(1816) {
		return fmt.Errorf("update: %+v", b)
	}
	updated, err = c.UpdateBooks(ctx, &api.BooksUpdate{Year: api.NewOptInt(1817)}, params)
	refused, err := is[*api.MismatchHeaders]("update of what was changed", updated, err)
	if err != nil {
		return err
	}
	if p := refused.Response; p.Type.String() != "urn:belfry:problem:mismatch" || p.Status != 412 {
		return fmt.Errorf("update of what was changed: %+v", p)
	}
	reply, err = c.CreateBooks(ctx, &api.BooksInput{UUID: api.NewOptString(uuid), Title: uuid}, api.CreateBooksParams{})
	if _, err := is[*api.ConflictHeaders]("create of what exists", reply, err); err != nil {
		return err
	}
	stored, err := c.UploadBinaryFile(ctx, api.UploadBinaryFileReq{Data: bytes.NewReader([]byte("\x89PNG"))},
		api.UploadBinaryFileParams{Store: "Books", UUID: uuid, Property: "covers", Index: "add"})
	file, err := is[*api.UploadBinaryFileCreatedHeaders]("upload", stored, err)
	if err == nil && file.Response.Size != 4 {
		err = fmt.Errorf("upload: %+v", file.Response)
	}
	return err
}
