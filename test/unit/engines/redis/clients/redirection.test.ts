import { expect, test } from 'vitest'
import { redirectionOf } from '../../../../../src/engines/redis/clients/cluster-link.js'
import { RedisReplyError } from '../../../../../src/engines/redis/clients/connection.js'

const redirection = (message: string): unknown => redirectionOf(new RedisReplyError(message), '10.0.0.1:7000')

test('a node sends on to another one, for good, for once, or to itself a little later', () => {
  expect(redirection('MOVED 3999 10.0.0.2:7001')).toEqual({
    kind: 'MOVED',
    slot: 3999,
    node: '10.0.0.2:7001',
  })
  expect(redirection('ASK 3999 ::1:7001')).toEqual({ kind: 'ASK', slot: 3999, node: '::1:7001' })
  expect(redirection('TRYAGAIN Multiple keys')).toMatchObject({ kind: 'TRYAGAIN', node: '10.0.0.1:7000' })
})

test('a node whose host is not known is on the host that was asked', () => {
  expect(redirection('MOVED 1 :7001')).toMatchObject({ node: '10.0.0.1:7001' })
})
