package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"strconv"

	"belfry/pkg/listener"
)

// newClient returns a client that follows one redirect, to a storage, without the
// token and the condition.
func newClient() *http.Client {
	return &http.Client{Timeout: patience, CheckRedirect: func(req *http.Request, via []*http.Request) error {
		if len(via) > 1 {
			return errors.New("one redirect led to another")
		}
		req.Header.Del("Authorization")
		req.Header.Del("If-Match")
		return nil
	}}
}

// statusError is a reply with another status than 2xx.
type statusError struct {
	code int
	text string
}

func (e statusError) Error() string { return "belfry replied " + e.text }

// download reads a file, if it is still the one with that hash.
func (m *maker) download(ctx context.Context, uuid string, index int, hash string) ([]byte, error) {
	path := fmt.Sprintf("%s/%s/%s/%s/%d", m.service, m.store, uuid, m.from, index)
	_, body, err := m.do(ctx, http.MethodGet, path, nil, http.Header{"If-Match": {strconv.Quote(hash)}})
	return body, err
}

// attach uploads a thumbnail, if the object is still at that revision. Its record
// names its source.
func (m *maker) attach(ctx context.Context, uuid, revision, of string, small picture) error {
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	part := textproto.MIMEHeader{
		"Content-Type":        {small.mimetype},
		"Content-Disposition": {`form-data; name="file"; filename="thumbnail` + small.extension + `"`},
	}
	if err := form.WriteField("of", of); err != nil {
		return err
	}
	file, err := form.CreatePart(part)
	if err != nil {
		return err
	}
	if _, err := file.Write(small.data); err != nil {
		return err
	}
	if err := form.Close(); err != nil {
		return err
	}
	path := fmt.Sprintf("%s/upload/%s/%s/%s/add", m.service, m.store, uuid, m.to)
	_, _, err = m.do(ctx, http.MethodPut, path, &body,
		http.Header{"If-Match": {revision}, "Content-Type": {form.FormDataContentType()}})
	return err
}

// do sends a request and returns the headers and body of a reply with status 2xx.
func (m *maker) do(ctx context.Context, method, path string, body io.Reader,
	with http.Header) (http.Header, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, m.belfry+path, body)
	if err != nil {
		return nil, nil, err
	}
	if with != nil {
		req.Header = with
	}
	if m.token != "" {
		req.Header.Set("Authorization", "Bearer "+m.token)
	}
	res, err := m.client.Do(req)
	var of *url.Error
	if errors.As(err, &of) {
		err = of.Err // without the URL, which may be one of a storage, with a signature
	}
	if err != nil {
		return nil, nil, err
	}
	data, err := io.ReadAll(io.LimitReader(res.Body, m.maxBytes+1))
	_ = res.Body.Close()
	switch {
	case err != nil:
		return nil, nil, err
	case res.StatusCode == http.StatusBadRequest || res.StatusCode == http.StatusRequestEntityTooLarge:
		return nil, nil, listener.Permanent(statusError{res.StatusCode, res.Status})
	case res.StatusCode < 200 || res.StatusCode > 299:
		return nil, nil, statusError{res.StatusCode, res.Status}
	case int64(len(data)) > m.maxBytes:
		return nil, nil, listener.Permanent(fmt.Errorf("it has over %d bytes", m.maxBytes))
	}
	return res.Header, data, nil
}
