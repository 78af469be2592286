package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"belfry/test/chaos/history"
)

// Snapshot reads every object of the run. It is recorded, as the reads of all clients are.
func (p *Pool) Snapshot(ctx context.Context) (map[history.Object]history.State, error) {
	states := map[history.Object]history.State{}
	for i, o := range history.Universe(p.Tag) {
		op := history.Op{Object: o, Kind: history.Get, Client: p.Clients,
			Request: fmt.Sprintf("%s-snapshot-%d", p.Tag, i), Call: p.History.Now()}
		r, err := request(ctx, p.http.insist, p.Deployment.Fronts[i%len(p.Deployment.Fronts)], &op)
		wrong := conclude(&op, r, err)
		op.Return = p.History.Now()
		if err != nil || wrong != "" || r.status != http.StatusOK && r.status != http.StatusNotFound {
			return nil, fmt.Errorf("reading %s when nothing is pending: %w", o, statusError(r, err))
		}
		if op.Outcome == history.Done {
			op.Revision, op.Body = revisionOf(r.header), r.body
			states[o] = history.State{Revision: op.Revision, Body: r.body}
		}
		p.History.Add(op)
		p.view.learn(op)
	}
	return states, nil
}

// Listed returns the run's objects as the lists of the stores have them, without revisions.
func (p *Pool) Listed(ctx context.Context) (map[history.Object]history.State, error) {
	states := map[history.Object]history.State{}
	for _, s := range history.All() {
		err := p.list(ctx, s.Path, func(body []byte) error {
			var o struct{ UUID string }
			if err := json.Unmarshal(body, &o); err != nil {
				return err
			}
			if strings.HasPrefix(o.UUID, p.Tag+".") {
				states[history.Object{Store: s.Name, UUID: o.UUID}] = history.State{Body: body}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return states, nil
}

// list calls fn with each object of a list.
func (p *Pool) list(ctx context.Context, path string, fn func(body []byte) error) error {
	for cursor := ""; ; {
		query := "?limit=500"
		if cursor != "" {
			query += "&cursor=" + url.QueryEscape(cursor)
		}
		r, err := p.http.insist(ctx, http.MethodGet, p.Deployment.Fronts[0]+path+query, nil, nil)
		if err != nil || r.status != http.StatusOK {
			return fmt.Errorf("listing %s: %w", path, statusError(r, err))
		}
		var page struct {
			Items  []json.RawMessage
			Cursor string
		}
		if err := json.Unmarshal(r.body, &page); err != nil {
			return err
		}
		for _, item := range page.Items {
			if err := fn(item); err != nil {
				return err
			}
		}
		if cursor = page.Cursor; cursor == "" {
			return nil
		}
	}
}

// Files reads the contents of all files that objects have, by the hash that their records have.
func (p *Pool) Files(ctx context.Context, states map[history.Object]history.State) (map[string][]byte, error) {
	contents := map[string][]byte{}
	for o, state := range states {
		for i, f := range history.Files(state.Body, history.Picture) {
			r, err := p.http.insist(ctx, http.MethodGet,
				fmt.Sprintf("%s/binary/%s/%d", p.Deployment.Fronts[0], filePath(o), i), nil, nil)
			if err != nil {
				return nil, err
			}
			if r.status == http.StatusOK {
				contents[f.Hash] = r.body
			}
		}
	}
	return contents, nil
}
