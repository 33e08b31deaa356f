import { describe, expect, test } from 'vitest'
import type { HazelcastFacts } from '../src/diagnosed-facts.js'
import { hazelcastFindings } from '../src/diagnosed-findings.js'

const WELL: HazelcastFacts = {
  members: [member('5.7.0'), member('5.7.1')],
  maps: [{ name: 'shop.table', backups: 1, ttl: Infinity, eviction: undefined }],
  foreign: [],
  entries: 'shop.values',
  ahead: 1200,
  uncertainty: 500,
  refusals: [],
}

function member(version: string | undefined, isLite = false) {
  return { address: '10.0.0.1:5701', version, isLite }
}

function found(facts: Partial<HazelcastFacts>): string[] {
  return hazelcastFindings({ ...WELL, ...facts }).map(({ id }) => id)
}

describe('what the doctor reports of a Hazelcast cluster', () => {
  test('nothing, if all is well or hidden from a client', () => {
    expect(found({})).toEqual([])
    const unseen = { ...WELL.maps[0]!, backups: undefined }
    expect(
      found({ members: [member(undefined), member('5.7.0')], maps: [unseen], ahead: undefined }),
    ).toEqual([])
  })

  test('members of different versions, and members that keep no data', () => {
    expect(found({ members: [member('5.7.0'), member('5.6.0')] })).toEqual(['mixed-versions'])
    expect(found({ members: [member('5.7.0'), member('5.7.0', true)] })).toEqual(['single-member'])
  })

  test('entries of other programs, at most five of them by name', () => {
    const foreign = Array.from({ length: 7 }, (_, at) => `k${at}`)
    const [finding] = hazelcastFindings({ ...WELL, foreign })
    expect(finding).toMatchObject({
      id: 'foreign-entries',
      how: expect.stringMatching(/7 entries.*: k0, .*, k4$/) as string,
    })
  })

  test('a clock that is wrong by more than the uncertainty of its reading', () => {
    expect(found({ ahead: 1600 })).toEqual(['clock'])
    expect(found({ ahead: -1600 })).toEqual(['clock'])
  })
})
