import { expect, test } from 'vitest'
import { growthWorks } from '../../bench/growth/part.js'
import { workReport, type Report } from '../../bench/report.js'
import { workText } from '../../bench/tables.js'
import { idOf, type Sample } from '../../bench/work.js'

const sample: Sample = {
  operations: 100,
  milliseconds: 1000,
  waits: Float64Array.of(1, 2),
  perPart: [60, 40],
  connections: 8,
}

function reportOf(name: string): Pick<Report, 'rows' | 'ratios' | 'targets'> {
  const work = growthWorks.find(one => one.name === name)!
  const measured = work.subjects.map(({ name: subject, growth }) => ({ subject, growth, samples: [sample] }))
  return workReport(work, measured)
}

test('a row of a report about growth has its place in a picture, the connections and the least share of a box', () => {
  const { rows, targets } = reportOf('Redis: 8 boxes, one key')
  expect(rows[0]).toMatchObject({
    subject: 'signalbox',
    connections: 8,
    leastShare: { median: 0.4 },
    growth: { picture: 'Redis: boxes, one key', line: 'signalbox', size: 8, unit: 'boxes' },
  })
  expect(targets).toMatchObject([{ measure: 'least share', goal: { atLeast: 1 / 16 }, reached: true }])
  expect(workText({ rows, ratios: [], targets: [] })).toMatch(/least share .* connections\n.* 40 % .* 8\n/)
})

test('every work about growth has names that no other has', () => {
  const ids = growthWorks.map(idOf)
  expect(new Set(ids).size).toBe(ids.length)
  for (const { subjects } of growthWorks)
    expect(new Set(subjects.map(({ name }) => name)).size).toBe(subjects.length)
})
