import { expect, test } from 'vitest'
import { calls } from '../src/calls.js'
import { CREATOR_ACL, OPEN_ACL, PERMISSIONS } from '../src/index.js'

const whole = { permissions: PERMISSIONS.read, scheme: 'world', id: 'anyone' }

const invalid: readonly unknown[] = [
  null,
  5,
  'world',
  whole,
  [null],
  ['world'],
  ...[0, 32, -1, 1.5, NaN, '1', undefined].map(permissions => [{ ...whole, permissions }]),
  [whole, { ...whole, scheme: 5 }],
  [{ ...whole, id: undefined }],
]

test.each(invalid.map(acl => ({ acl })))('$acl is rejected before it is sent', ({ acl }) => {
  const refused = expect.objectContaining({ code: 'INVALID_ARGUMENT' }) as Error
  expect(() => calls.setAcl('/a', acl as never, -1)).toThrow(refused)
  expect(() => calls.create('/a', Buffer.of(), { acl: acl as never })).toThrow(refused)
})

test.each([OPEN_ACL, CREATOR_ACL, [whole], []].map(acl => ({ acl })))('$acl is accepted', ({ acl }) => {
  expect(calls.setAcl('/a', acl, -1).name).toBe('setAcl')
  expect(calls.create('/a', Buffer.of(), { acl }).name).toBe('create')
})
