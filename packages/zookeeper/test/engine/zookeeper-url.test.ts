import { expect, test } from 'vitest'
import { parseZooKeeperUrl } from '../../src/engine/zookeeper-url.js'
import { InvalidArgumentError } from 'signalbox'
import { CREATOR_ACL, OPEN_ACL, PERMISSIONS } from '../../src/index.js'

test('a ZooKeeper URL names servers, a node, credentials and their kind', () => {
  expect(parseZooKeeperUrl('zookeeper://a,b:2182,[::1]:7/app/locks?sessionTimeout=6s')).toEqual({
    name: 'zookeeper://a,b:2182,[::1]:7/app/locks',
    ensemble: 'a,b:2182,[::1]:7',
    root: '/app/locks',
    connect: { sessionTimeout: 6000 },
    acl: OPEN_ACL,
    isBridged: false,
  })
  expect(parseZooKeeperUrl('zookeeper://a')).toMatchObject({
    root: '/signalbox',
    connect: { sessionTimeout: 10_000 },
  })
  expect(parseZooKeeperUrl('zookeeper://a/x?bridge=true')).toMatchObject({ isBridged: true })
  expect(parseZooKeeperUrl('zookeeper://a/x?bridge=false')).toMatchObject({ isBridged: false })
  expect(parseZooKeeperUrl('zookeeper://a/zookeeper-app')).toMatchObject({ root: '/zookeeper-app' })
  expect(parseZooKeeperUrl('zookeeper://a/')).toMatchObject({ root: '', name: 'zookeeper://a/' })
  expect(parseZooKeeperUrl('zookeeper://ann:s%40cret@a/x?sessionTimeout=5000&acl=creator')).toMatchObject({
    connect: { auth: [{ scheme: 'digest', data: 'ann:s@cret' }], sessionTimeout: 5000 },
    acl: CREATOR_ACL,
    name: 'zookeeper://a/x',
  })
  expect(parseZooKeeperUrl('zookeeper://ann:s%3Acret@a/x?auth=sasl').connect).toEqual({
    sasl: { user: 'ann', password: 's:cret' },
    sessionTimeout: 10_000,
  })
  expect(parseZooKeeperUrl('zookeeper://ann:secret@a/x?auth=digest').connect).toEqual({
    auth: [{ scheme: 'digest', data: 'ann:secret' }],
    sessionTimeout: 10_000,
  })
  expect(
    parseZooKeeperUrl('zookeeper://ann:secret@a?acl=auth::cdrwa,digest:bob:x%2By=:rw,ip:10.0.0.0/8:r').acl,
  ).toEqual([
    { permissions: PERMISSIONS.all, scheme: 'auth', id: '' },
    { permissions: PERMISSIONS.read + PERMISSIONS.write, scheme: 'digest', id: 'bob:x+y=' },
    { permissions: PERMISSIONS.read, scheme: 'ip', id: '10.0.0.0/8' },
  ])
  expect(parseZooKeeperUrl('zookeeper://a?acl=world:anyone:rr').acl).toEqual([
    { permissions: PERMISSIONS.read, scheme: 'world', id: 'anyone' },
  ])
  expect(parseZooKeeperUrl('zookeeper+tls://ann:secret@a:2281')).toMatchObject({
    name: 'zookeeper+tls://a:2281/signalbox',
    connect: { tls: {}, auth: [{ scheme: 'digest', data: 'ann:secret' }] },
  })
})

test('an invalid URL is rejected with an error without its password', () => {
  for (const url of [
    'zookeeper:a',
    'zookeeper+ssl://a',
    'zookeeper://',
    'zookeeper://a,,b',
    'zookeeper://a/x/',
    'zookeeper://a?color=red',
    'zookeeper://a?sessionTimeout=1',
    'zookeeper://a?acl=mine',
    'zookeeper://a?acl=creator',
    'zookeeper://a?acl=auth::cdrwa',
    'zookeeper://a?acl=world:anyone',
    'zookeeper://a?acl=world:anyone:x',
    'zookeeper://a?acl=world:anyone:r,',
    'zookeeper://a?acl=:anyone:r',
    'zookeeper://ann:secret@a?auth=kerberos',
    'zookeeper://ann:@a?auth=sasl',
    'zookeeper://a?auth=sasl',
    'zookeeper://a?bridge=yes',
    'zookeeper://a?bridge=',
    'zookeeper://secret@a',
    'zookeeper://ann:%secret@a',
    'zookeeper://a/zookeeper',
    'zookeeper://a/zookeeper/quota',
  ]) {
    expect(() => parseZooKeeperUrl(url), url).toThrow(InvalidArgumentError)
    expect(() => parseZooKeeperUrl(url), url).not.toThrow(/secret/)
  }
})
