import { expect, test } from 'vitest'
import { InvalidArgumentError } from '../../../src/base/errors.js'
import { open } from '../../../src/open.js'

test.each([
  'file:./locks?durable=true&durable=false',
  'redis://127.0.0.1:1?prefix=one&prefix=another',
  'redis-quorum://127.0.0.1:1,127.0.0.1:2,127.0.0.1:3?prefix=one&prefix=another',
  'zookeeper://127.0.0.1:1?acl=open&acl=creator',
  'hazelcast://127.0.0.1:1?map=one&map=another',
])('refuses %s as ambiguous', async url => {
  const opening = open(url)
  await expect(opening).rejects.toThrow(InvalidArgumentError)
  await expect(opening).rejects.toThrow(/option "(durable|prefix|acl|map)" twice/)
})
