import type { ComponentChildren, JSX } from 'preact'
import { useLayoutEffect, useRef, useState } from 'preact/hooks'

/** Number of rows that are drawn above and below the visible ones. */
const MARGIN = 8
const PHONE = matchMedia('(max-width: 44rem)')

/** Returns whether the page is as narrow as on a phone. */
export function usePhone(): boolean {
  const [isPhone, setPhone] = useState(PHONE.matches)
  useLayoutEffect(() => {
    const update = (): void => setPhone(PHONE.matches)
    PHONE.addEventListener('change', update)
    return () => PHONE.removeEventListener('change', update)
  }, [])
  return isPhone
}

interface Properties<T> {
  readonly items: readonly T[]
  readonly label: string
  readonly keyOf: (item: T, index: number) => string
  readonly row: (item: T, index: number) => ComponentChildren
  /** Height of a row in pixels, on a wide page and on a phone. */
  readonly heights: readonly [wide: number, phone: number]
}

/** A list of rows of equal height, of which those near the visible part of the page are drawn. */
export function VirtualList<T>({ items, label, keyOf, row, heights }: Properties<T>): JSX.Element {
  const list = useRef<HTMLUListElement>(null)
  const [[first, last], setRange] = useState<readonly [number, number]>([0, 40])
  const height = heights[usePhone() ? 1 : 0]
  useLayoutEffect(() => {
    const update = (): void => {
      const { top } = list.current!.getBoundingClientRect()
      const from = Math.max(0, Math.floor(-top / height) - MARGIN)
      const to = Math.max(0, Math.ceil((innerHeight - top) / height) + MARGIN)
      setRange(before => (before[0] === from && before[1] === to ? before : [from, to]))
    }
    update()
    addEventListener('scroll', update, { passive: true })
    addEventListener('resize', update)
    return () => {
      removeEventListener('scroll', update)
      removeEventListener('resize', update)
    }
  }, [height, items.length])
  return (
    <ul class="rows" ref={list} aria-label={label} style={{ height: `${items.length * height}px` }}>
      {items.slice(first, last).map((item, offset) => {
        const index = first + offset
        return (
          <li
            key={keyOf(item, index)}
            aria-setsize={items.length}
            aria-posinset={index + 1}
            style={{ height: `${height}px`, transform: `translateY(${index * height}px)` }}
          >
            {row(item, index)}
          </li>
        )
      })}
    </ul>
  )
}
