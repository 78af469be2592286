package config

// Tracing says where traces are sent; nowhere when Endpoint is empty.
type Tracing struct {
	Endpoint string  `key:"endpoint" is:"traceEndpoint"`  // of a receiver of OTLP over HTTP
	Ratio    float64 `key:"ratio" is:"ratio" default:"1"` // of the requests that are traced, 0 to 1
	CA       string  // as Config.CA
	Service  string  `key:"service" is:"nonempty" default:"belfry"` // the name under which the spans of this process are found
}
