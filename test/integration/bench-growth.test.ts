import { expect, test } from 'vitest'
import { chart } from '../../bench/chart.js'
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

test('the picture of a report about growth has a line for each library and a point for each size', async () => {
  const sizes = [1, 8, 32, 100]
  const parts = sizes.map(size => reportOf(`files: ${size} ${size === 1 ? 'box' : 'boxes'}, one key`))
  const machine = {
    cpu: 'a',
    cores: 2,
    memory: 1,
    system: 's',
    fileSystem: 'f',
    node: '20',
    load: 0,
    versions: {},
  }
  const rows = parts.flatMap(part => part.rows)
  const svg = await chart({ command: 'c', date: '2030-01-01', machine, rows, ratios: [], targets: [] })
  expect(svg).toContain('files: boxes, one key')
  expect(svg.match(/aria-roledescription="line mark"/g)).toHaveLength(2)
  expect(svg.match(/aria-roledescription="point"/g)).toHaveLength(2 * sizes.length)
})

test('every work about growth has names that no other has', () => {
  const ids = growthWorks.map(idOf)
  expect(new Set(ids).size).toBe(ids.length)
  for (const { subjects } of growthWorks)
    expect(new Set(subjects.map(({ name }) => name)).size).toBe(subjects.length)
})
