package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// client sends requests to the belfry of the demo.
type client struct {
	url string
}

// reply is an object, or the status of a failure.
type reply struct {
	status int
	waited bool // the mappings and cascades of the write were applied
	object map[string]any
}

// do sends a request; a write waits for its mappings and cascades.
func (c *client) do(ctx context.Context, method, path, body string) (*reply, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.url+path, bytes.NewBufferString(body))
	if err != nil {
		return nil, err
	}
	if method != http.MethodGet {
		req.Header.Set("Prefer", "wait=30")
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, err
	}
	r := &reply{status: res.StatusCode, waited: res.Header.Get("Preference-Applied") != ""}
	if len(data) > 0 {
		if err := json.Unmarshal(data, &r.object); err != nil {
			return nil, fmt.Errorf("%s %s: %w: %s", method, path, err, data)
		}
	}
	return r, nil
}

// get reads an object that must exist.
func (c *client) get(ctx context.Context, path string) (map[string]any, error) {
	r, err := c.do(ctx, http.MethodGet, path, "")
	if err == nil && r.status != http.StatusOK {
		err = fmt.Errorf("GET %s: %d %v", path, r.status, r.object["detail"])
	}
	if err != nil {
		return nil, err
	}
	return r.object, nil
}

// write makes a write that must succeed, with its mappings and cascades.
func (c *client) write(ctx context.Context, method, path, body string, status int) error {
	r, err := c.do(ctx, method, path, body)
	switch {
	case err != nil:
		return err
	case r.status != status:
		return fmt.Errorf("%s %s: %d %v", method, path, r.status, r.object["detail"])
	case !r.waited:
		return fmt.Errorf("%s %s: its mappings and cascades were not applied within 30 s", method, path)
	}
	return nil
}

// entries returns a mapped array of an object.
func entries(object map[string]any, array string) []map[string]any {
	values, _ := object[array].([]any)
	all := make([]map[string]any, 0, len(values))
	for _, v := range values {
		if e, ok := v.(map[string]any); ok {
			all = append(all, e)
		}
	}
	return all
}
