// Command oapi uses the client that oapi-codegen makes of a document: what a program does with a store.
package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"

	"belfry/test/servers/clients/oapi/api"
)

func main() {
	if err := run(context.Background(), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "oapi:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, url string) error {
	c, err := api.NewClientWithResponses(url)
	if err != nil {
		return err
	}
	uuid, year := "oapi", 1815
	made, err := c.CreateBooksWithResponse(ctx, nil, api.BooksInput{Uuid: &uuid, Title: "oapi", Year: &year})
	if err != nil || made.JSON201 == nil || made.JSON201.Title != "oapi" {
		return fmt.Errorf("create: %w, %s", err, made.Body)
	}
	filter := `title == "oapi"`
	page, err := c.ListBooksWithResponse(ctx, &api.ListBooksParams{Filter: &filter})
	if err != nil || page.JSON200 == nil || len(page.JSON200.Items) != 1 || page.JSON200.Items[0].Uuid != uuid {
		return fmt.Errorf("list: %w, %s", err, page.Body)
	}
	tag, year := made.HTTPResponse.Header.Get("ETag"), 1816
	update := func() (*api.UpdateBooksResponse, error) {
		return c.UpdateBooksWithResponse(ctx, uuid, &api.UpdateBooksParams{IfMatch: &tag}, api.BooksUpdate{Year: &year})
	}
	changed, err := update()
	if err != nil || changed.JSON200 == nil || *changed.JSON200.Year != 1816 || changed.JSON200.Title != "oapi" {
		return fmt.Errorf("update: %w, %s", err, changed.Body)
	}
	refused, err := update()
	if err != nil || refused.StatusCode() != http.StatusPreconditionFailed ||
		refused.ApplicationproblemJSON412.Type != "urn:belfry:problem:mismatch" {
		return fmt.Errorf("update of what was changed: %w, %s", err, refused.Body)
	}
	invalid, err := c.CreateBooksWithResponse(ctx, nil, api.BooksInput{})
	if err != nil || invalid.ApplicationproblemJSON400 == nil || len(*invalid.ApplicationproblemJSON400.Errors) == 0 {
		return fmt.Errorf("create of what is invalid: %w, %s", err, invalid.Body)
	}
	file, err := c.UploadBinaryFileWithBodyWithResponse(ctx, "Books", uuid, "covers", "add", nil, "image/png",
		bytes.NewReader([]byte("\x89PNG")))
	if err != nil || file.JSON201 == nil || file.JSON201.Size != 4 || file.JSON201.Mimetype != "image/png" {
		return fmt.Errorf("upload: %w, %s", err, file.Body)
	}
	return nil
}
