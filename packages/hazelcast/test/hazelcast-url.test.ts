import { expect, test } from 'vitest'
import { configuredPlace, parseHazelcastUrl } from '../src/hazelcast-url.js'
import { InvalidArgumentError } from 'signalbox'

test('a Hazelcast URL names members, a cluster, a user and a map', () => {
  expect(parseHazelcastUrl('hazelcast://a,b:5702,[::1]:7/prod?map=shop')).toEqual({
    name: 'hazelcast://a,b:5702,[::1]:7/prod',
    config: { clusterName: 'prod', network: { clusterMembers: ['a:5701', 'b:5702', '[::1]:7'] } },
    map: 'shop',
  })
  expect(parseHazelcastUrl('hazelcast://a')).toMatchObject({
    name: 'hazelcast://a',
    config: { clusterName: 'dev' },
    map: 'signalbox',
  })
  const secured = parseHazelcastUrl('hazelcast://ann:s%40cret@a/my%20cluster')
  expect(secured.name).not.toContain('cret')
  expect(secured.config).toMatchObject({
    clusterName: 'my cluster',
    security: { usernamePassword: { username: 'ann', password: 's@cret' } },
  })
})

test('an invalid URL is rejected with an error without its password', () => {
  for (const url of [
    'hazelcast:a',
    'hazelcast://',
    'hazelcast://a,,b',
    'hazelcast://a:99999',
    'hazelcast://a/x/y',
    'hazelcast://a?color=red',
    'hazelcast://a?map=',
    'hazelcast://secret@a',
    'hazelcast://ann:%secret@a',
  ]) {
    expect(() => parseHazelcastUrl(url), url).toThrow(InvalidArgumentError)
    expect(() => parseHazelcastUrl(url), url).not.toThrow(/secret/)
  }
})

test('a configuration of the client is passed on unchanged', () => {
  const hazelcast = { clusterName: 'prod', network: { clusterMembers: ['a'], ssl: { enabled: true } } }
  const place = configuredPlace({ hazelcast })
  expect(place.config).toBe(hazelcast)
  expect(place).toMatchObject({ name: 'hazelcast://a/prod', map: 'signalbox' })
  expect(() => configuredPlace({ hazelcast: 7 as never })).toThrow(InvalidArgumentError)
  expect(() => configuredPlace({ hazelcast, color: 'red' } as never)).toThrow(InvalidArgumentError)
})
