// The library in an application's own worker: the engine runs in it.

import { connect } from 'lancelet';

export interface FacadeAnswer {
  readonly rows?: unknown[];
  readonly error?: string;
}

self.onmessage = async ({ data }: MessageEvent<string>) => {
  let answer: FacadeAnswer;
  try {
    const db = await connect(data);
    const table = await db.createTable('inner', [{ a: 1 }, { a: 2 }]);
    answer = { rows: await table.query().where('a > 1').toArray({ plainObjects: true }) };
    await table.close();
    await db.close();
  } catch (error) {
    answer = { error: String(error) };
  }
  self.postMessage(answer);
};
