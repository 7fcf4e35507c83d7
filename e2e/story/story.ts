// Story: the public API on the window, for tests that play a user's program in a page.

import * as lancelet from 'lancelet';

declare global {
  interface Window {
    lancelet: typeof lancelet;
    /** The number of a row that was acknowledged; put there by a test that ends the browser. */
    acknowledge(number: number): void;
  }
}

window.lancelet = lancelet;
