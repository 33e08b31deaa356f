import type { TopLevelSpec } from 'vega-lite'
import { drawn } from '../drawing.js'
import type { Outcome } from './comparison.js'
import { SECOND, type Setting } from './setting.js'

/** Distance between two points of the curve, in milliseconds. */
const STEP = 100

/** Draws for each strategy, over time, the number of calls that arrived in the preceding second. Returns SVG. */
export function picture(outcomes: readonly Outcome[], setting: Setting): Promise<string> {
  const { limit, seconds } = setting
  const values = outcomes.flatMap(({ figures: { name }, run }) => {
    const arrivals = run.calls.map(({ arrived }) => arrived - run.startedAt).sort((a, b) => a - b)
    return curve(arrivals, seconds).map(([time, calls]) => ({ name, time, calls, limit }))
  })
  const names = outcomes.map(({ figures: { name } }) => name)
  const x = { field: 'time', type: 'quantitative', title: 'seconds' } as const
  const y = { type: 'quantitative' as const, title: null, scale: { domain: [0, 2 * limit] } }
  const specification: TopLevelSpec = {
    background: 'white',
    title: `Calls that arrived in the second before, limit ${limit}`,
    data: { values },
    facet: { field: 'name', type: 'nominal', sort: names, title: null },
    columns: 3,
    spec: {
      width: 240,
      height: 70,
      layer: [
        {
          mark: { type: 'area', color: '#d62728', clip: true },
          encoding: { x, y: { ...y, field: 'calls' } },
        },
        {
          // Covers the part of the red area that is within the limit.
          transform: [{ calculate: 'min(datum.calls, datum.limit)', as: 'within' }],
          mark: { type: 'area', color: '#4c78a8' },
          encoding: { x, y: { ...y, field: 'within' } },
        },
      ],
    },
  }
  return drawn(specification)
}

/** Returns for each step the time in seconds and the most calls within a second that ended during the step. */
function curve(arrivals: readonly number[], seconds: number): readonly (readonly [number, number])[] {
  const points: (readonly [number, number])[] = []
  let first = 0
  let next = 0
  for (let time = 0; time <= seconds * SECOND; time += STEP) {
    let most = 0
    for (; next < arrivals.length && arrivals[next]! < time; next++) {
      while (arrivals[next]! - arrivals[first]! >= SECOND) first++
      most = Math.max(most, next - first + 1)
    }
    while (first < next && time - arrivals[first]! >= SECOND) first++
    points.push([time / SECOND, Math.max(most, next - first)])
  }
  return points
}
