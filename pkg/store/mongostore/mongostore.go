package mongostore

import (
	"context"
	"crypto/x509"
	"errors"
	"net"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readconcern"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"belfry/pkg/errs"
	"belfry/pkg/store/driver"
)

// Options configures a Backend.
type Options struct {
	// URL is a connection string, mongodb:// or mongodb+srv://. It may have a user,
	// a password, and options of the MongoDB driver, except those for consistency
	// (w, journal, readConcernLevel, readPreference), which the backend sets.
	URL string

	// Database has a collection for each store.
	Database string

	// RootCAs verify the certificates of servers, if the URL asks for TLS and names no tlsCAFile. nil means those of
	// the system.
	RootCAs *x509.CertPool
}

const (
	// defaultTimeout bounds a command, unless the URL has timeoutMS.
	defaultTimeout = 30 * time.Second

	// selectTimeout bounds the search for a server, unless the URL has
	// serverSelectionTimeoutMS or connectTimeoutMS: long enough for the election of
	// a primary, short enough to report a missing one soon.
	selectTimeout = 5 * time.Second

	closeTimeout = 5 * time.Second
)

// Backend is a driver.Backend that keeps its stores in a database.
type Backend struct {
	client     *mongo.Client
	database   *mongo.Database
	timeout    time.Duration // of a command
	maxInserts int           // insertions in flight
	address    string        // "MongoDB at <hosts>", for messages

	knownLayout atomic.Bool // the layout of the database is this package's
}

var _ driver.Backend = (*Backend)(nil)

// Open creates a Backend. It does not connect to the database, only to the DNS for
// mongodb+srv; use Ping for that. The Backend reconnects after an outage. Open reports
// errs.Invalid for an invalid URL.
func Open(ctx context.Context, o Options) (*Backend, error) {
	if err := ctx.Err(); err != nil {
		return nil, errCanceled(err)
	}
	if o.Database == "" {
		return nil, errs.New(errs.Invalid, "a MongoDB backend needs the name of its database")
	}
	settings := options.Client().ApplyURI(o.URL)
	if err := settings.Validate(); err != nil {
		return nil, urlError(o.URL, err)
	}
	if settings.TLSConfig != nil && settings.TLSConfig.RootCAs == nil {
		settings.TLSConfig.RootCAs = o.RootCAs
	}
	address := "MongoDB at " + strings.Join(settings.Hosts, ",")
	timeout := setDefaults(settings)
	client, err := mongo.Connect(settings)
	if err != nil {
		return nil, urlError(o.URL, err)
	}
	return &Backend{client: client, database: client.Database(o.Database), timeout: timeout,
		maxInserts: maxInserts(settings), address: address}, nil
}

// setDefaults sets defaults for options that the URL does not have, and the options
// that belfry relies on. It returns the timeout of a command.
func setDefaults(o *options.ClientOptions) time.Duration {
	if o.AppName == nil {
		o.SetAppName("belfry")
	}
	if o.ServerSelectionTimeout == nil {
		o.SetServerSelectionTimeout(selectTimeout)
	}
	if o.ConnectTimeout == nil {
		o.SetConnectTimeout(selectTimeout)
	}
	journal := true
	o.SetWriteConcern(&writeconcern.WriteConcern{W: writeconcern.WCMajority, Journal: &journal})
	o.SetReadConcern(readconcern.Majority())
	o.SetReadPreference(readpref.Primary())
	if o.Timeout != nil && *o.Timeout > 0 {
		return *o.Timeout
	}
	return defaultTimeout
}

// maxInserts returns how many insertions are in flight before further ones are
// batched: half of the connections. With enough connections none has to wait.
func maxInserts(o *options.ClientOptions) int {
	const most = 100 // the driver's own default
	if o.MaxPoolSize == nil || *o.MaxPoolSize == 0 || *o.MaxPoolSize > most {
		return most / 2
	}
	return int(*o.MaxPoolSize+1) / 2 //nolint:gosec // small
}

// urlError describes the error of a URL without quoting the URL.
func urlError(text string, err error) error {
	var dns *net.DNSError
	if errors.As(err, &dns) {
		return errs.New(errs.Unavailable, "the servers in the MongoDB backend's URL can't be resolved: %s", dns.Error())
	}
	reason := err.Error()
	if u, parseErr := url.Parse(text); parseErr != nil || u.User != nil {
		// The MongoDB driver may quote a part of it.
		reason = "check its scheme, its options, and that special characters of user and password are percent-encoded"
	}
	return errs.New(errs.Invalid, "the MongoDB backend's URL is invalid: %s", reason)
}

// Ping implements driver.Backend.
func (b *Backend) Ping(ctx context.Context) error {
	limited, cancel := b.withTimeout(ctx)
	defer cancel()
	return b.wrapError(ctx, "be used", b.client.Ping(limited, readpref.Primary()))
}

// Close implements driver.Backend.
func (b *Backend) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if err := b.client.Disconnect(ctx); err != nil {
		return errs.Wrap(err, errs.Unavailable, "closing the connections to %s failed", b.address)
	}
	return nil
}

// withTimeout returns a context with the timeout of a command.
func (b *Backend) withTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, b.timeout)
}
