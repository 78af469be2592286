// The compiler accepts functions without a body, as that of the runtime, only beside a file like this one.
