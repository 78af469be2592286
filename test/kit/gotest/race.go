package gotest

// uninstrumented are packages that compute in one goroutine at a time, as the model does under a lock: the race
// detector finds nothing in them, and takes most of their time. It still sees their mutexes, channels and goroutines,
// which are those of the runtime. A package that synchronizes by sync/atomic must not be here, nor one that uses what
// is inlined into it and does, sync.Once and sync.Map: what it publishes would look like a race.
var uninstrumented = []string{
	// explores the states of a model one after the other
	"belfry/test/model",
	"belfry/bench/scale",                                             // simulates one step after the other
	"cel.dev/cel-go/common/ast",                                      // expressions as they are checked
	"encoding/base64",                                                // for encoding/json and many others
	"github.com/alecthomas/kong",                                     // reads the command line
	"github.com/antlr4-go/antlr/v4",                                  // parses expressions
	"github.com/aws/smithy-go/middleware",                            // makes the steps of a request in turn
	"github.com/blevesearch/vellum/levenshtein",                      // builds its tables when a program starts
	"github.com/go-json-experiment/json/internal/jsonwire",           // for jsontext
	"github.com/go-json-experiment/json/jsontext",                    // reads and writes API documents
	"github.com/santhosh-tekuri/jsonschema/v6",                       // judges translations of schemas
	"github.com/aws/smithy-go/transport/http/protocol/internal/json", // encodes requests of DynamoDB
	"go.yaml.in/yaml/v3",                                             // reads configurations
	"golang.org/x/crypto/argon2",                                     // hashes passwords
	"golang.org/x/crypto/blake2b",                                    // for argon2
	"regexp",                                                         // for kong and many others
	"strconv",                                                        // for encoding/json and many others
	"text/template/parse",                                            // parses pages and mails
}

// Race returns the flags of go build and go test for the race detector.
func Race() []string {
	flags := []string{"-race"}
	for _, name := range uninstrumented {
		flags = append(flags, "-gcflags="+name+"=-race=false")
	}
	return flags
}

// RaceOptions are, in the environment, options of the race detector. A program would otherwise sleep for a second
// before it exits, and the detector would map its memory of a large buffer anew whenever one is allocated, which takes
// a fifth of the CPU time of the tests of binaries.
const RaceOptions = "GORACE=atexit_sleep_ms=10 clear_shadow_mmap_threshold=16777216"
