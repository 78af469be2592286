package config

// Backend configures where stores keep their objects. Only the field that Type
// names is set.
type Backend struct {
	Type     string         `key:"type" of:"a backend" is:"one file mongodb dynamodb" default:"file"`
	File     *FileBackend   `variant:"file"`
	MongoDB  *MongoBackend  `variant:"mongodb"`
	DynamoDB *DynamoBackend `variant:"dynamodb"`
}

// FileBackend keeps objects in a folder.
type FileBackend struct {
	Folder string `key:"folder" is:"folder" default:"{data}/stores/{name}"`
	Cache  int64  `key:"cache" is:"size 1TiB"` // bytes of blocks; 0: according to the memory of the process
}

// MongoBackend names a database. The URL may hold a password.
type MongoBackend struct {
	URL      Secret `key:"url" is:"mongoURL" secret:"true" default:"mongodb://127.0.0.1:27017"`
	Database string `key:"database" is:"name" default:"belfry"`
	CA       string // as Config.CA
}

// DynamoBackend names a region or an custom endpoint. Credentials come
// from the AWS SDK's default chain.
type DynamoBackend struct {
	Region      string `key:"region" is:"nonempty"`
	Endpoint    string `key:"endpoint" is:"url http https"`
	TablePrefix string `key:"tablePrefix" default:"belfry_"`

	CA string // as Config.CA
}
