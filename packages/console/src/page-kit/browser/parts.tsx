import type { ComponentChildren, JSX } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'

/** A link for the keyboard from the start of the page to its heading. */
export function SkipLink(): JSX.Element {
  return (
    <a
      class="skip"
      href="#main"
      onClick={event => {
        event.preventDefault()
        document.querySelector('h1')?.focus()
      }}
    >
      Skip to the content
    </a>
  )
}

/** The name of the project. */
export function Brand(): JSX.Element {
  return (
    <p class="brand">
      <span class="lamp" aria-hidden="true" />
      Signalbox
    </p>
  )
}

/** The heading of a view. It takes the focus when the view opens, so that a screen reader begins there. */
export function Heading({ children }: { readonly children: ComponentChildren }): JSX.Element {
  const heading = useRef<HTMLHeadingElement>(null)
  useLayoutEffect(() => heading.current!.focus({ preventScroll: true }), [])
  return (
    <h1 ref={heading} tabIndex={-1}>
      {children}
    </h1>
  )
}

/** A text in place of an empty list. */
export function Empty({ children }: { readonly children: ComponentChildren }): JSX.Element {
  return <p class="empty">{children}</p>
}
