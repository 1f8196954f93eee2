// Speaks to a cluster with TLS through @grpc/grpc-js and the .proto files alone, and prints what it was told as JSON.
//   node client.js ENDPOINT PROTO_ROOT CA CERTIFICATE KEY MODULES
'use strict';

const fs = require('fs');
const path = require('path');

const [endpoint, protoRoot, ca, certificate, key, modules] = process.argv.slice(2);
const grpc = require(path.join(modules, '@grpc/grpc-js'));
const loader = require(path.join(modules, '@grpc/proto-loader'));

const loaded = loader.loadSync(['proto/kv.proto', 'proto/admin.proto'], {
  includeDirs: [protoRoot], keepCase: true, longs: String, enums: String, defaults: true, oneofs: true});
const gyre = grpc.loadPackageDefinition(loaded).gyre.v1;
const credentials = grpc.credentials.createSsl(fs.readFileSync(ca), fs.readFileSync(key), fs.readFileSync(certificate));
const kv = new gyre.Kv(endpoint, credentials);
const admin = new gyre.Admin(endpoint, credentials);

function call(stub, method, request) {
  return new Promise((resolve, reject) => {
    stub[method](request, {deadline: Date.now() + 10000},
                 (error, reply) => error ? reject(error) : resolve(reply));
  });
}

function session(requests) {
  return new Promise((resolve, reject) => {
    const stream = kv.Session({deadline: Date.now() + 10000});
    const replies = [];
    stream.on('data', (batch) => replies.push(...batch.replies));
    stream.on('error', reject);
    stream.on('end', () => resolve(replies));
    stream.write({requests});
    stream.end();
  });
}

const values = (reply) => reply.values.map((value) => value.value.toString()).sort();

async function scan(prefix) {
  const keys = [];
  let cursor = Buffer.alloc(0);
  do {
    const page = await call(kv, 'Scan', {prefix: Buffer.from(prefix), cursor});
    keys.push(...page.rows.map((row) => row.key.toString()));
    cursor = page.next_cursor;
  } while (cursor.length > 0);
  return keys.sort();
}

async function main() {
  const name = Buffer.from('node-js/cart');
  const told = {};
  const first = await call(kv, 'Put', {key: name, value: Buffer.from('milk'), w: {name: 'ALL'}});
  told.acks = first.acks;
  told.got = values(await call(kv, 'Get', {key: name, r: {name: 'QUORUM'}}));
  for (const value of ['bread', 'eggs']) {
    await call(kv, 'Put', {key: name, value: Buffer.from(value), context: first.context});
  }
  const siblings = await call(kv, 'Get', {key: name});
  told.siblings = values(siblings);
  await call(kv, 'Put', {key: name, value: Buffer.from('bread,eggs'), context: siblings.context});
  told.resolved = values(await call(kv, 'Get', {key: name}));
  const replies = await session([1, 2].map((id) => ({
    id, timeout_ms: 5000, put: {key: Buffer.from(`node-js/${id}`), value: Buffer.from([id, 0, 255])}})));
  told.session = replies.map((reply) => [reply.id, reply.code]).sort();
  told.bytes = (await call(kv, 'Get', {key: Buffer.from('node-js/1')})).values[0].value.toString('hex');
  told.scanned = await scan('node-js/');
  await call(kv, 'Delete', {key: name, context: (await call(kv, 'Get', {key: name})).context});
  told.deleted = values(await call(kv, 'Get', {key: name}));
  told.left = await scan('node-js/');
  const status = await call(admin, 'ClusterStatus', {});
  told.nodes = status.topology.nodes.map((node) => [node.id, node.state]);
  process.stdout.write(JSON.stringify(told) + '\n');
  kv.close();
  admin.close();
}

main().catch((error) => {
  process.stderr.write(`client.js: ${error.stack}\n`);
  process.exit(1);
});
