import { expect, test } from 'vitest'
import { VirtualClock } from '../../../../src/base/clock.js'
import { answered, STATEMENT_TIMEOUT } from '../../../../src/engines/postgres/clients/answered.js'
import { endsConnection, sqlError } from '../../../../src/engines/postgres/clients/sql-client.js'

const failure = (properties: object): Error => Object.assign(new Error('it failed'), properties)

test.each([
  ['the server refuses it', { code: '23505' }, '23505', false, false],
  ['the server ends the connection', { code: '57P01' }, '57P01', true, true],
  ['the server ends an idle connection', { code: '57P05' }, '57P05', false, true],
  ['a pooler ends the connection', { code: '08P01' }, '08P01', true, true],
  ['the server refuses the connection', { code: '57P03' }, '57P03', false, false],
  ['the connection breaks', { code: 'ECONNRESET', syscall: 'read' }, undefined, true, true],
  ['nothing can be written any more', { code: 'EPIPE', syscall: 'write' }, undefined, true, true],
  ['the client says nothing more', {}, undefined, true, true],
  ['no connection is made', { code: 'ECONNREFUSED', syscall: 'connect' }, undefined, false, true],
  ['no host is found', { code: 'ENOTFOUND', syscall: 'getaddrinfo' }, undefined, false, true],
  [
    'no address is reached',
    { errors: [{ syscall: 'connect' }, { syscall: 'connect' }] },
    undefined,
    false,
    true,
  ],
  ['postgres makes no connection', { code: 'CONNECT_TIMEOUT' }, undefined, false, true],
])('when %s', (_, properties, code, isUnclear, isOver) => {
  const error = sqlError(failure(properties), true)
  expect(error).toMatchObject({ code, isUnclear, message: 'it failed' })
  expect(endsConnection(error)).toBe(isOver)
})

test.each([
  ['08P01', 'server login has been failing, try again later (server_login_retry)', false],
  ['08P01', 'server login has been failing, cached error: connect failed (server_login_retry)', false],
  ['08P01', 'query_wait_timeout', false],
  ['08P01', 'client_login_timeout (server down)', false],
  ['08P01', 'no more connections allowed (max_client_conn)', false],
  ['08006', 'odyssey: c1: failed to connect to remote server s1', false],
  ['08001', 'the server refused the connection', false],
  ['08004', 'the server refused the connection', false],
  ['58000', 'could not get connection from the pool - AllServersDown', false],
  ['08P01', 'server conn crashed?', true],
  ['08P01', 'query_timeout', true],
  ['08006', 'odyssey: c1: remote server read/write error s1', true],
  ['08000', 'connection exception', true],
  ['08003', 'connection does not exist', true],
  ['08007', 'transaction resolution unknown', true],
])('a pooler that says %s, %s', (code, message, isUnclear) => {
  expect(sqlError(Object.assign(new Error(message), { code }), true).isUnclear).toBe(isUnclear)
})

test('it is known after every failure whether a statement was not sent', () => {
  expect(sqlError(failure({ code: '57P01' }), false).isUnclear).toBe(false)
  expect(sqlError(failure({}), false).isUnclear).toBe(false)
})

test('an error without a message has its code as message', () => {
  expect(sqlError(Object.assign(new AggregateError([]), { code: 'ECONNREFUSED' }), true).message).toBe(
    'ECONNREFUSED',
  )
})

test('a missing reply is reported once', async () => {
  const clock = new VirtualClock()
  let late = 0
  const asked = answered(new Promise(() => undefined), clock, true, () => late++)
  clock.advance(STATEMENT_TIMEOUT - 1)
  expect(late).toBe(0)
  clock.advance(1)
  await expect(asked).rejects.toMatchObject({ isUnclear: true, code: undefined })
  expect(late).toBe(1)
})
