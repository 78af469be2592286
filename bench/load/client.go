package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httputil"
	"slices"
	"strconv"
	"strings"
	"time"
)

// client is one keep-alive connection. It implements a minimal part of
// HTTP, because it shares the machine with what is measured.
type client struct {
	conn    net.Conn
	in      *bufio.Reader
	header  string // lines of each request of do, with their ends
	out     []byte
	body    []byte // of the last response
	checked bool   // a response, by who sends the requests
}

func dial(base string) (*client, error) {
	conn, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
	if err != nil {
		return nil, err
	}
	return &client{conn: conn, in: bufio.NewReaderSize(conn, 16<<10)}, nil
}

func (c *client) close() { _ = c.conn.Close() }

// do sends a request and reads its response into c.body.
func (c *client) do(method, path string, body []byte) (status int, err error) {
	c.out = append(append(append(append(c.out[:0], method...), ' '), path...), " HTTP/1.1\r\nHost: localhost\r\n"...)
	c.out = append(c.out, c.header...)
	if body != nil {
		if !strings.Contains(c.header, "Content-Type:") {
			c.out = append(c.out, "Content-Type: application/json\r\n"...)
		}
		c.out = append(c.out, "Content-Length: "...)
		c.out = strconv.AppendInt(c.out, int64(len(body)), 10)
		c.out = append(c.out, '\r', '\n')
	}
	c.out = append(append(c.out, '\r', '\n'), body...)
	if err := c.conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		return 0, err
	}
	if _, err := c.conn.Write(c.out); err != nil {
		return 0, err
	}
	return c.read()
}

// upload sends a body of head and rest.
func (c *client) upload(path string, head, rest []byte) (status int, err error) {
	c.out = append(append(append(c.out[:0], "PUT "...), path...), " HTTP/1.1\r\nHost: localhost\r\nContent-Length: "...)
	c.out = append(strconv.AppendInt(c.out, int64(len(head)+len(rest)), 10), "\r\n\r\n"...)
	if err := c.conn.SetDeadline(time.Now().Add(10 * time.Minute)); err != nil {
		return 0, err
	}
	all := net.Buffers{c.out, head, rest}
	if _, err := all.WriteTo(c.conn); err != nil {
		return 0, err
	}
	return c.read()
}

// download reads a response, discards its body and returns the length.
func (c *client) download(path string) (status int, length int, err error) {
	c.out = append(append(append(c.out[:0], "GET "...), path...), " HTTP/1.1\r\nHost: localhost\r\n\r\n"...)
	if err := c.conn.SetDeadline(time.Now().Add(10 * time.Minute)); err != nil {
		return 0, 0, err
	}
	if _, err := c.conn.Write(c.out); err != nil {
		return 0, 0, err
	}
	if status, length, err = c.head(); err != nil {
		return 0, 0, err
	}
	if length == chunked {
		return 0, 0, errors.New("a download without a length")
	}
	c.body = slices.Grow(c.body[:0], 256<<10)[:256<<10]
	for left := length; left > 0 && err == nil; {
		var n int
		n, err = c.in.Read(c.body[:min(left, len(c.body))])
		left -= n
	}
	return status, length, err
}

// read reads a response.
func (c *client) read() (status int, err error) {
	status, length, err := c.head()
	if err != nil {
		return 0, err
	}
	if length == chunked {
		return status, c.readChunks()
	}
	c.body = slices.Grow(c.body[:0], length)[:length]
	_, err = io.ReadFull(c.in, c.body)
	return status, err
}

// chunked is the length of a body that comes in chunks.
const chunked = -1

// readChunks reads such a body.
func (c *client) readChunks() error {
	body := bytes.NewBuffer(c.body[:0])
	if _, err := body.ReadFrom(httputil.NewChunkedReader(c.in)); err != nil {
		return err
	}
	c.body = body.Bytes()
	end, err := c.in.ReadSlice('\n') // there are no trailers
	if err == nil && len(bytes.TrimRight(end, "\r\n")) > 0 {
		err = fmt.Errorf("a trailer: %q", end)
	}
	return err
}

// head reads a response up to its body.
func (c *client) head() (status, length int, err error) {
	line, err := c.in.ReadSlice('\n')
	if err != nil {
		return 0, 0, err
	}
	if len(line) < 12 {
		return 0, 0, fmt.Errorf("not HTTP: %q", line)
	}
	if status, err = strconv.Atoi(string(line[9:12])); err != nil {
		return 0, 0, err
	}
	for {
		line, err = c.in.ReadSlice('\n')
		if err != nil {
			return 0, 0, err
		}
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			return status, length, nil
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		switch {
		case len(name) == len("Content-Length") && bytes.EqualFold(name, []byte("Content-Length")):
			if length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
				return 0, 0, err
			}
		case bytes.EqualFold(name, []byte("Transfer-Encoding")):
			length = chunked
		}
	}
}
