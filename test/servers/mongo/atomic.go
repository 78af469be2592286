package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
)

// atomic forwards commands of any number of connections to the server one at a time. FerretDB reads the
// documents of an update and writes them in two steps, and so loses one of two updates that overlap;
// MongoDB's own server executes the update of a document atomically.
type atomic struct {
	socket string // of the server
	mu     sync.Mutex
}

// serve accepts connections until the context ends.
func (a *atomic) serve(ctx context.Context, l net.Listener) error {
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	for {
		client, err := l.Accept()
		if err != nil {
			return errors.Join(ctx.Err(), err)
		}
		go a.forward(client)
	}
}

func (a *atomic) forward(client net.Conn) {
	defer func() { _ = client.Close() }()
	server, err := net.Dial("unix", a.socket)
	if err != nil {
		return // the client dials again
	}
	defer func() { _ = server.Close() }()
	for {
		command, err := readMessage(client)
		if err != nil {
			return
		}
		reply, err := a.execute(server, command)
		if err != nil {
			return
		}
		if _, err := client.Write(reply); err != nil {
			return
		}
	}
}

// execute has the server execute a command. Each has one reply: the driver sends none without
// acknowledgement, and the server offers no streaming.
func (a *atomic) execute(server net.Conn, command []byte) ([]byte, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, err := server.Write(command); err != nil {
		return nil, err
	}
	return readMessage(server)
}

// maxMessage is that of MongoDB's protocol.
const maxMessage = 48_000_000

// readMessage reads a message, which begins with its length.
func readMessage(r io.Reader) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	size := binary.LittleEndian.Uint32(head[:])
	if size < 16 || size > maxMessage {
		return nil, fmt.Errorf("a message of %d bytes", size)
	}
	message := make([]byte, size)
	copy(message, head[:])
	_, err := io.ReadFull(r, message[len(head):])
	return message, err
}
