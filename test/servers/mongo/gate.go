package main

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"slices"
	"sync"
)

// gate forwards the commands of clients to a server, and those that write one at a time.
type gate struct {
	listener net.Listener
	server   string // its address
	writing  sync.Mutex
}

func newGate(listen, server string) (*gate, error) {
	listener, err := net.Listen("tcp", listen)
	return &gate{listener: listener, server: server}, err
}

func (g *gate) serve() {
	for {
		client, err := g.listener.Accept()
		if err != nil {
			return
		}
		go g.forward(client)
	}
}

// forward serves one client, whose connection has one of its own to the server. When one of them ends, so does
// the other.
func (g *gate) forward(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", g.server)
	if err != nil {
		return
	}
	defer server.Close()
	for {
		request, err := readMessage(client)
		if err != nil {
			return
		}
		reply, err := g.execute(server, request)
		if err != nil {
			return
		}
		if _, err := client.Write(reply); err != nil {
			return
		}
	}
}

func (g *gate) execute(server net.Conn, request []byte) ([]byte, error) {
	if slices.Contains(writes, command(request)) {
		g.writing.Lock()
		defer g.writing.Unlock()
	}
	if _, err := server.Write(request); err != nil {
		return nil, err
	}
	return readMessage(server)
}

// writes are the commands that write.
var writes = []string{
	"insert", "update", "delete", "findAndModify", "create", "createIndexes", "dropIndexes", "drop", "dropDatabase",
}

// A message begins with its length, its id, the id that it replies to, and its kind, of four bytes each. The kind
// OP_MSG has four bytes of flags, the kind of a section, 0, and the command as a document: its length, and the
// type and the name of its first element.
const (
	headerSize  = 16
	kindAt      = 12
	opMessage   = 2013
	firstNameAt = headerSize + 4 + 1 + 4 + 1
	maxMessage  = 48 << 20
)

func readMessage(from io.Reader) ([]byte, error) {
	header := make([]byte, headerSize)
	if _, err := io.ReadFull(from, header); err != nil {
		return nil, err
	}
	size := binary.LittleEndian.Uint32(header)
	if size < headerSize || size > maxMessage {
		return nil, io.ErrUnexpectedEOF
	}
	message := make([]byte, size)
	copy(message, header)
	_, err := io.ReadFull(from, message[headerSize:])
	return message, err
}

// command returns the name of a message's command, and "" for those of kinds that only handshakes have.
func command(message []byte) string {
	if len(message) < firstNameAt || binary.LittleEndian.Uint32(message[kindAt:]) != opMessage {
		return ""
	}
	name, _, _ := bytes.Cut(message[firstNameAt:], []byte{0})
	return string(name)
}
