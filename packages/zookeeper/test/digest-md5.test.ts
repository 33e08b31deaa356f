import { expect, test } from 'vitest'
import { DigestMd5 } from '../src/digest-md5.js'
import { ProtocolError } from '../src/errors.js'

const login = { user: 'chris', password: 'secret' }
const challenge =
  'realm="elwood.innosoft.com",nonce="OA6MG9tEQGm2hh",qop="auth",algorithm=md5-sess,charset=utf-8'

function exchange(user = login): DigestMd5 {
  return new DigestMd5(user, 'OA6MHXh6VqTrRk', 'imap/elwood.innosoft.com')
}

test('the example of RFC 2831 is reproduced', () => {
  const chris = exchange()
  const answer = chris.answer(Buffer.from(challenge)).toString()
  expect(answer).toContain('response=d388dad90d4bbd760a152321f2143af7')
  expect(answer).toContain('digest-uri="imap/elwood.innosoft.com"')
  chris.verify(Buffer.from('rspauth=ea40f60335c427b5527b84dbabcdfffd'))
  for (const wrong of ['rspauth=ea40f60335c427b5527b84dbabcdfffe', 'rspauth=', 'rspauth=e', ''])
    expect(() => chris.verify(Buffer.from(wrong))).toThrow(ProtocolError)
})

test('an invalid DIGEST-MD5 challenge is rejected', () => {
  for (const other of [
    '',
    'realm="a"',
    'nonce="a",algorithm=md5',
    'nonce="a",algorithm=md5-sess,qop="auth-conf"',
  ])
    expect(() => exchange().answer(Buffer.from(other))).toThrow(ProtocolError)
  expect(() => exchange().verify(Buffer.from('rspauth='))).toThrow(ProtocolError)
})

test('names may contain quotes', () => {
  const answer = exchange({ user: 'a"b\\c', password: 'x' }).answer(Buffer.from(challenge)).toString()
  expect(answer).toContain(String.raw`username="a\"b\\c"`)
})
