import { expect, test } from 'vitest'
import { InvalidArgumentError } from '../src/errors.js'
import { addressesOf, parseEnsemble } from '../src/hosts.js'

test('hosts have a port and are tried in random order', async () => {
  expect(parseEnsemble('a,b:2182/root')).toEqual({
    hosts: [
      { host: 'a', port: 2181 },
      { host: 'b', port: 2182 },
    ],
    chroot: '/root',
  })
  const { hosts } = parseEnsemble('10.0.0.1,10.0.0.2,10.0.0.3')
  const first = new Set<string>()
  for (let round = 0; round < 100; round++) first.add((await addressesOf(hosts))[0]!.host)
  expect(first.size).toBe(3)
})

test('an error about a list of servers shows no credentials', () => {
  for (const text of ['zookeeper://ann:secret@a', 'ann:se/cret@b:2181', 'ann:sec@ret@c,d']) {
    expect(() => parseEnsemble(text), text).toThrow(/^an ensemble must look like/)
    expect(() => parseEnsemble(text), text).not.toThrow(/ann|ret/)
  }
})

test('an invalid list of servers is rejected', () => {
  for (const text of ['', 'host:0', 'host:99999', 'a,,b', 'host/a/', 'a b', 7])
    expect(() => parseEnsemble(text as string), String(text)).toThrow(InvalidArgumentError)
})
