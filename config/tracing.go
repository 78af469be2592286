package config

import (
	"errors"
	"net/url"
	"strconv"
)

// Tracing says where traces are sent; nowhere when Endpoint is empty.
type Tracing struct {
	Endpoint string  // of a receiver of OTLP over HTTP
	Ratio    float64 // of the requests that are traced, 0 to 1
	CA       string  // as Config.CA
	Service  string  // the name under which the spans of this process are found
}

func readTracing(s *section) Tracing {
	t := Tracing{Ratio: 1, Service: "belfry"}
	decode(s, "endpoint", &t.Endpoint, parseTraceEndpoint)
	decode(s, "ratio", &t.Ratio, parseRatio)
	decode(s, "service", &t.Service, parseNonEmpty)
	s.rejectUnknown()
	return t
}

// parseTraceEndpoint returns the URL for traces: a URL without a path is that of a receiver, whose path is the usual one.
func parseTraceEndpoint(text string) (string, error) {
	if text == "" {
		return "", nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", errors.New("expected a URL of a receiver of OTLP over HTTP without user and query, such as http://localhost:4318, or nothing")
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/v1/traces"
	}
	return u.String(), nil
}

func parseRatio(text string) (float64, error) {
	ratio, err := strconv.ParseFloat(text, 64)
	if err != nil || !(ratio >= 0 && ratio <= 1) {
		return 0, errors.New("expected a number from 0 to 1")
	}
	return ratio, nil
}
