import { expect, test } from 'vitest'
import { networkOf } from '../../../../src/limits/http/index.js'

test.each([
  ['192.0.2.7', '192.0.2.7'],
  ['::ffff:192.0.2.7', '192.0.2.7'],
  ['0:0:0:0:0:ffff:c000:0207', '192.0.2.7'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
  ['2001:DB8:0001:2::6', '2001:db8:1:2::/64'],
  ['2001:db8::6', '2001:db8:0:0::/64'],
  ['::1', '0:0:0:0::/64'],
  ['fe80::1%eth0', 'fe80:0:0:0::/64'],
  ['1:2:3:4:5:6:192.0.2.7', '1:2:3:4::/64'],
  ['192.0.2.7:5678', '192.0.2.7'],
  ['  192.0.2.7 ', '192.0.2.7'],
  ['"192.0.2.7:_port"', '192.0.2.7'],
  ['[2001:db8::6]:5678', '2001:db8:0:0::/64'],
  ['"\\[2001:db8::6]:5678"', '2001:db8:0:0::/64'],
  ['::ffff:192.0.2.7:5678', '192.0.2.7'],
  ['2001:db8:1:2:3:4:5:6:5678', '2001:db8:1:2::/64'],
  ['198.51.100.1, 192.0.2.7:5678', '192.0.2.7'],
  ['198.51.100.1 ,\t[2001:db8::6]:5678, ', '2001:db8:0:0::/64'],
  ['For="[2001:db8::6]:4711"', '2001:db8:0:0::/64'],
  ['proto=http;by=203.0.113.43; FOR = "192.0.2.7:5678"', '192.0.2.7'],
  ['for=198.51.100.1;proto=http, for=192.0.2.7;host="a,b;for=198.51.100.1\\""', '192.0.2.7'],
  // A value that the client sends itself, before the proxy adds its own.
  ['"forged, 192.0.2.7:5678', '192.0.2.7'],
  ['for="forged\\, for="192.0.2.7:5678"', '192.0.2.7'],
  ['unknown', 'unknown'],
  ['for="_Hidden:_5678"', '_Hidden'],
  ['proto=http', 'proto=http'],
  ['example.org:80', 'example.org:80'],
  ['', ''],
  [undefined, undefined],
])('the network of %s is %s', (address, network) => {
  expect(networkOf(address)).toBe(network)
})

test('a long text is decided in one pass', () => {
  for (const text of ['a', '"', ':', '[', ']', '\\"', ';', ',', ' ', ':a', ';for=']) {
    const value = text.repeat(100_000)
    expect(networkOf(value)).toBe(value)
  }
})
