import type { Row } from './report.js'

/** Number of pictures side by side. */
const COLUMNS = 3

/** Draws how the speed of each subject changes with a size: a picture for each title, a line for each subject. */
export function growthPictures(rows: readonly Row[]): object {
  const points = rows.flatMap(({ growth, opsPerSecond }) =>
    growth ? [{ ...growth, speed: opsPerSecond?.median ?? null }] : [],
  )
  const titles = [...new Set(points.map(({ picture }) => picture))]
  const pictures = titles.map(title => {
    const values = points.filter(({ picture }) => picture === title)
    const y = {
      field: 'speed',
      type: 'quantitative',
      scale: { type: 'log' },
      title: 'operations a second',
      axis: { format: '~s' },
    }
    return {
      title: { text: title, anchor: 'start' },
      data: { values },
      width: 220,
      height: 160,
      mark: { type: 'line', point: true },
      encoding: {
        x: { field: 'size', type: 'ordinal', title: values[0]!.unit, axis: { labelAngle: 0 } },
        y,
        color: {
          field: 'line',
          type: 'nominal',
          title: null,
          legend: { orient: 'bottom', direction: 'vertical', labelLimit: 260 },
        },
      },
    }
  })
  return {
    concat: pictures,
    columns: COLUMNS,
    resolve: { scale: { color: 'independent', x: 'independent' } },
  }
}
