// Command dex serves OpenID Connect for tests by dex: its server, with its storage in memory and its connector of
// tests, whose user only has to approve. dex's own command has the same server, and needs a C compiler for a storage
// that is not used here.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"os"

	"github.com/dexidp/dex/connector"
	"github.com/dexidp/dex/connector/mock"
	"github.com/dexidp/dex/server"
	"github.com/dexidp/dex/storage"
	"github.com/dexidp/dex/storage/memory"
	"github.com/dexidp/dex/web"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:5556", "the address to listen on")
	client := flag.String("client", "belfry", "the id of the client")
	secret := flag.String("secret", "", "its secret")
	redirect := flag.String("redirect", "", "its redirect URI")
	groups := flag.Int("groups", 0, "of how many groups the user is")
	flag.Parse()
	if err := serve(*listen,
		storage.Client{ID: *client, Secret: *secret, RedirectURIs: []string{*redirect}, Name: *client},
		*groups); err != nil {
		log.Fatal(err)
	}
}

// member is the connector of tests for a user of some groups.
type member struct{ groups int }

func (m *member) Open(_ string, logger *slog.Logger) (connector.Connector, error) {
	all, _ := mock.NewCallbackConnector(logger).(*mock.Callback)
	for i := range m.groups {
		all.Identity.Groups = append(all.Identity.Groups, fmt.Sprintf("group %d of the users of an organization", i))
	}
	return all, nil
}

// serve serves until it is killed. Each start has keys of its own.
func serve(listen string, client storage.Client, groups int) error {
	logger := slog.New(slog.NewTextHandler(os.Stderr, nil))
	kept := storage.WithStaticClients(memory.New(logger), []storage.Client{client})
	server.ConnectorsConfig["mockCallback"] = func() server.ConnectorConfig { return &member{groups} }
	kept = storage.WithStaticConnectors(kept,
		[]storage.Connector{{ID: "mock", Name: "Mock", Type: "mockCallback", Config: []byte("{}")}})
	dex, err := server.NewServer(context.Background(), server.Config{
		Issuer: "http://" + listen + "/dex", Storage: kept, Web: server.WebConfig{WebFS: web.FS()}, Logger: logger,
	})
	if err != nil {
		return err
	}
	return http.ListenAndServe(listen, dex) //nolint:gosec // of tests
}
