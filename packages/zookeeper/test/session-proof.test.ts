import { beforeEach, describe, expect, test } from 'vitest'
import { SessionProof } from '../src/session-proof.js'

const TIMEOUT = 3000

describe('what replies prove about a session of 3 s', () => {
  let proof: SessionProof

  beforeEach(() => {
    proof = new SessionProof()
    proof.welcomed(0, TIMEOUT, true)
  })

  /** Records a request and its answer after a while, through the leader or also a quorum. */
  function request(sentAt: number, answeredAt: number, isWrite: boolean): void {
    const { reported } = proof
    const answeredBefore = proof.reportedBy(sentAt)
    proof.answered(sentAt, answeredAt)
    proof.ledAnswer(answeredBefore)
    if (isWrite) proof.quorumAnswer(reported)
  }

  test('a write alone proves nothing, no matter how late it is answered', () => {
    proof.answered(100, 101)
    request(2500, 2900, true)
    expect(proof.certainUntil).toBe(TIMEOUT)
  })

  test.each([
    [110, 100 + TIMEOUT],
    [111, TIMEOUT],
  ])('a reply at %i counts if a ping comes before the leader’s reply', (answeredAt, until) => {
    proof.answered(100, answeredAt)
    request(1110, 1120, false)
    expect(proof.certainUntil).toBe(TIMEOUT)
    request(1120, 1130, true)
    expect(proof.certainUntil).toBe(until)
  })

  test('a write that was sent before the leader had answered proves no more than was known by then', () => {
    proof.answered(100, 110)
    const { reported } = proof
    request(1500, 1510, false)
    proof.quorumAnswer(reported)
    expect(proof.certainUntil).toBe(TIMEOUT)
    request(1510, 1520, true)
    expect(proof.certainUntil).toBe(100 + TIMEOUT)
  })

  test('another connection is proof from when it was requested, with the first write', () => {
    proof.answered(100, 110)
    proof.welcomed(2000, TIMEOUT, false)
    expect(proof.certainUntil).toBe(TIMEOUT)
    request(2010, 2020, true)
    expect(proof.certainUntil).toBe(2000 + TIMEOUT)
  })

  test('a write over the previous connection proves nothing', () => {
    proof.answered(100, 110)
    request(1500, 1510, false)
    proof.welcomed(1600, TIMEOUT, false)
    request(1610, 1620, true)
    expect(proof.certainUntil).toBe(1600 + TIMEOUT)
  })
})
